// Command node-ssh is what ssh is on a node of this cluster, for the tests that stop kubelet: Kubernetes' tests reach a node only so. It runs the
// commands that the owner of the key sends, and ends with its standard input.
//
//	node-ssh -listen ADDRESS -key FILE -path DIRECTORY
//
// The server's key and the only one that may log in are both in FILE.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"

	"golang.org/x/crypto/ssh"
)

func main() {
	listen := flag.String("listen", "", "the address and port to serve")
	key := flag.String("key", "", "a private key in PEM: that of the server and of its only user")
	path := flag.String("path", "", "a directory whose programs go before those of the node")
	flag.Parse()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(serve(*listen, *key, *path))
}

func serve(listen, keyFile, path string) error {
	content, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(offered.Marshal(), key.PublicKey().Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(key)
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go login(conn, config, path)
	}
}

func login(conn net.Conn, config *ssh.ServerConfig, path string) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		log.Print(err)
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go session(channel, requests, path)
	}
}

// session runs the one command of a session and reports its exit code.
func session(channel ssh.Channel, requests <-chan *ssh.Request, path string) {
	defer channel.Close()
	for r := range requests {
		var command struct{ Text string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		code := run(command.Text, path, channel)
		log.Printf("%d: %s", code, command.Text)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}

func run(command, path string, channel ssh.Channel) uint32 {
	cmd := exec.Command("bash", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return uint32(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(channel.Stderr(), err)
		return 255
	}
	return 0
}
