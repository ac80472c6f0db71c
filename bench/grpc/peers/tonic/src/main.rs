//! Serves api.Users with tonic on PORT, on one thread, as its documentation shows it.

mod api;

use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;

use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::Stream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use api::users_server::{Users, UsersServer};
use api::{GetUserRequest, ListUserRequest, User};

struct Directory;

#[tonic::async_trait]
impl Users for Directory {
    async fn get(&self, request: Request<GetUserRequest>) -> Result<Response<User>, Status> {
        Ok(Response::new(User {
            id: request.into_inner().id,
            email: "dmitry.k@test.tld".to_owned(),
            name: "Dmitry K.".to_owned(),
            rating: 228.53,
        }))
    }

    type ListStream = Pin<Box<dyn Stream<Item = Result<User, Status>> + Send>>;

    async fn list(
        &self,
        _: Request<ListUserRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let users = (0..10).map(|i| {
            Ok(User {
                id: i,
                email: format!("user{i}@test"),
                name: format!("User {i}"),
                rating: i as f64 * 1.53,
            })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(users))))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, env::var("PORT")?.parse()?));
    let mut stop = signal(SignalKind::terminate())?;
    let serving = Server::builder()
        .add_service(UsersServer::new(Directory))
        .serve(address);
    tokio::select! {
        served = serving => served?,
        _ = stop.recv() => {}
    }
    Ok(())
}
