use std::time::Duration;

use super::model::Why;
use super::*;
use crate::server::capacity::LaneLimits;

fn capacity() -> Capacity {
    let lane = |per_connection, queues| LaneLimits {
        name: "requests",
        running: 4,
        per_connection,
        queues,
    };
    Capacity {
        noun: "requests",
        connections: 6,
        queue: 8,
        lanes: vec![lane(usize::MAX, true), lane(2, false)],
        concurrency: Vec::new(),
        client_share: 0.5,
        buffered_bytes: 10 * UNRESERVED,
    }
}

fn server() -> State<Id, Why> {
    State::new(capacity())
}

fn peer(address: &str) -> Option<SocketAddr> {
    Some(SocketAddr::new(address.parse().unwrap(), 1))
}

fn arrive(server: &mut State<Id, Why>, connection: Id) -> Result<Id, String> {
    let arrival = Arrival {
        connection,
        ..Arrival::default()
    };
    let arrived = server.arrive(arrival, (), |id, ()| (id, ()));
    arrived
        .map(|(id, ())| id)
        .map_err(|(refusal, ())| refusal.message)
}

fn queue(server: &mut State<Id, Why>, connection: Id) -> Id {
    let id = arrive(server, connection).unwrap();
    server.complete(id);
    id
}

fn start(server: &mut State<Id, Why>) -> Option<Id> {
    match server.next()? {
        Event::Request(id) => Some(id),
        event => panic!("{event:?}"),
    }
}

#[test]
fn requests_of_one_client_start_in_their_order_and_clients_take_turns() {
    let mut server = server();
    let one = server.connect(peer("192.0.2.1")).unwrap();
    let other = server.connect(peer("192.0.2.2")).unwrap();
    let queued = [one, one, one, other, other].map(|on| queue(&mut server, on));
    let started: Vec<Id> = std::iter::from_fn(|| start(&mut server)).collect();
    assert_eq!(started, [queued[0], queued[3], queued[1], queued[4]]);
}

#[test]
fn one_client_takes_no_more_than_its_share_of_anything() {
    let mut server = server();
    let connections = [(); 3].map(|()| server.connect(peer("192.0.2.1")).unwrap());
    let refused = server.connect(peer("192.0.2.1")).unwrap_err().message;
    assert_eq!(
        refused,
        "the client address has 3 connections open, which is its limit"
    );
    let greedy = connections[0];
    for _ in 0..4 {
        queue(&mut server, greedy);
    }
    let refused = arrive(&mut server, greedy).unwrap_err();
    assert_eq!(
        refused,
        "the client address has 4 requests waiting, which is its limit"
    );
    assert!(start(&mut server).is_some() && start(&mut server).is_some());
    assert_eq!(start(&mut server), None);
    let other = server.connect(peer("192.0.2.2")).unwrap();
    let theirs = queue(&mut server, other);
    assert_eq!(start(&mut server), Some(theirs));
    assert_eq!(server.refusals.unreported(Why::Limit), 2);
}

#[test]
fn connections_without_an_address_have_no_share() {
    let mut server = server();
    let connections = [(); 6].map(|()| server.connect(None).unwrap());
    for connection in connections {
        arrive(&mut server, connection).unwrap();
    }
    for _ in 0..2 {
        queue(&mut server, connections[0]);
    }
    let refused = arrive(&mut server, connections[0]).unwrap_err();
    assert_eq!(
        refused,
        "the server has 8 requests waiting, which is its limit"
    );
}

#[test]
fn a_request_that_lasts_leaves_its_place_to_others() {
    let mut server = server();
    let connection = server.connect(None).unwrap();
    let started = [(); 3].map(|()| {
        queue(&mut server, connection);
        start(&mut server).unwrap()
    });
    assert!(server.change_lane(started[0], 1).is_ok());
    assert!(server.change_lane(started[1], 1).is_ok());
    let refused = server.change_lane(started[2], 1).unwrap_err().message;
    assert_eq!(
        refused,
        "the connection has 2 requests open, which is its limit"
    );
    assert_eq!((server.lanes[0].running, server.lanes[1].running), (1, 2));
}

#[test]
fn requests_that_waited_in_a_lane_without_a_queue_are_refused_when_its_limit_falls_below_them() {
    let mut server = server();
    let connections = [(); 3].map(|()| server.connect(None).unwrap());
    let watch = |server: &mut State<Id, Why>, connection| {
        let arrival = Arrival {
            connection,
            lane: 1,
            ..Arrival::default()
        };
        let (id, ()) = server.arrive(arrival, (), |id, ()| (id, ())).ok().unwrap();
        server.complete(id);
        id
    };
    let first = watch(&mut server, connections[0]);
    let others = [1, 2].map(|index| watch(&mut server, connections[index]));

    server.fit(3);

    let limit = server.lanes[1].limit;
    assert!(limit < 3, "{limit}");
    let refused: Vec<_> = std::iter::from_fn(|| server.next_action()).collect();
    assert_eq!(refused.len(), 3 - limit);
    assert!(refused.iter().all(|(id, action)| {
        others.contains(id) && matches!(action, Action::Refuse(refusal) if refusal.message == format!("the server has {limit} requests open, which is its limit"))
    }), "{refused:?}");
    assert_eq!(start(&mut server), Some(first));
}

#[test]
fn abandoned_requests_and_ended_timers_do_not_pile_up() {
    let mut server = server();
    let connection = server.connect(peer("192.0.2.1")).unwrap();
    let deadline = Some(Instant::now() + Duration::from_secs(60));
    for _ in 0..100_000 {
        let arrival = Arrival {
            connection,
            deadline,
            ..Arrival::default()
        };
        let arrived = server.arrive(arrival, (), |id, ()| (id, ()));
        let (id, ()) = arrived.ok().unwrap();
        server.complete(id);
        server.detach(id);
    }
    assert_eq!(server.waiting, 0);
    let client = server.clients.iter().next().unwrap();
    assert!(client.lanes[0].queue.kept() <= 33);
    assert!(server.timers.kept() <= 65);
    let live = queue(&mut server, connection);
    assert_eq!(start(&mut server), Some(live));
}

#[test]
fn addresses_of_one_ipv6_network_are_one_client() {
    let mut server = server();
    for address in ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:0:1::"] {
        server.connect(peer(address)).unwrap();
    }
    assert!(server.connect(peer("2001:db8::3")).is_err());
    assert!(server.connect(peer("2001:db8:0:1::1")).is_ok());
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    assert_eq!(network(mapped), "192.0.2.1".parse::<IpAddr>().unwrap());
}

#[test]
fn uploads_get_their_bytes_in_order_and_one_that_leaves_holds_up_no_other() {
    let mut server = server();
    let connection = server.connect(None).unwrap();
    let all = [(); 4].map(|()| arrive(&mut server, connection).unwrap());
    assert!(server.reserve(all[0], 8 * UNRESERVED));
    assert!(!server.reserve(all[1], 4 * UNRESERVED));
    assert!(!server.reserve(all[2], 3 * UNRESERVED));
    assert!(
        !server.reserve(all[3], 2 * UNRESERVED),
        "it would fit, and came later"
    );
    server.detach(all[1]);
    assert_eq!(server.next_action(), None);
    server.detach(all[0]);
    assert_eq!(server.next_action(), Some((all[2], Action::Resume)));
    assert_eq!(server.next_action(), Some((all[3], Action::Resume)));
    assert!(server.reserve(all[2], 3 * UNRESERVED) && server.reserve(all[3], 2 * UNRESERVED));
}

#[test]
fn small_uploads_need_no_bytes_and_one_that_is_larger_than_the_budget_has_it_alone() {
    let mut server = server();
    let connection = server.connect(None).unwrap();
    let [large, small, other] = [(); 3].map(|()| arrive(&mut server, connection).unwrap());
    assert!(server.reserve(large, 50 * UNRESERVED));
    assert!(server.reserve(small, UNRESERVED));
    assert!(!server.reserve(other, UNRESERVED + 1));
    server.release_bytes(large);
    assert_eq!(server.next_action(), Some((other, Action::Resume)));
}

#[test]
fn the_first_refusal_of_a_cause_is_reported_at_once_and_the_others_together() {
    let mut server = server();
    let now = Instant::now();
    let report = |server: &mut State<Id, Why>, after| {
        let reports = server.take_reports(now + Duration::from_secs(after));
        let reports = reports.into_iter();
        reports.map(|it| (it.count, it.detail)).collect::<Vec<_>>()
    };
    server.add_refusal(Why::Malformed, None, "a");
    assert_eq!(report(&mut server, 0), [(1, "a".to_owned())]);
    (0..1_000).for_each(|_| server.add_refusal(Why::Malformed, None, "b"));
    server.add_refusal(Why::Limit, None, &"c".repeat(300));
    assert_eq!(report(&mut server, 1), [(1, "c".repeat(200))]);
    assert_eq!(report(&mut server, 9), []);
    assert_eq!(server.reports_due(), Some(now + Duration::from_secs(10)));
    assert_eq!(report(&mut server, 10), [(1_000, "b".to_owned())]);
}
