// Command go serves api.Users with grpc-go on PORT, as its documentation shows it.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"

	"weft/bench/grpc/peers/go/users"
)

type server struct {
	users.UnimplementedUsersServer
}

func (server) Get(_ context.Context, request *users.GetUserRequest) (*users.User, error) {
	return &users.User{Id: request.Id, Email: "dmitry.k@test.tld", Name: "Dmitry K.", Rating: 228.53}, nil
}

func (server) List(_ *users.ListUserRequest, stream grpc.ServerStreamingServer[users.User]) error {
	for i := range 10 {
		user := &users.User{
			Id:     int64(i),
			Email:  fmt.Sprintf("user%d@test", i),
			Name:   fmt.Sprintf("User %d", i),
			Rating: float64(i) * 1.53,
		}
		if err := stream.Send(user); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	users.RegisterUsersServer(s, server{})
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		s.Stop()
	}()
	if err := s.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
