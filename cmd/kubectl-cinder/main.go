// Command kubectl-cinder is a kubectl plugin: `kubectl cinder volume NAMESPACE/CLAIM` says where a volume hangs, and what to do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/rusage"
)

// version is set by the linker.
var version = "dev"

func main() {
	rusage.Limit(1) // the exit code of a failure
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what looks at no context
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		columns = 0 // no terminal
	}
	code := command.Run(ctx, command.World{
		Stdout: os.Stdout, Stderr: os.Stderr, Columns: columns, Env: os.Getenv, Version: version, Connect: cloud.Connect, Kubernetes: cluster.Connect,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
