// Command guest-image writes kernels and initial file systems of the test guest.
//
//	guest-image -dir bin/vm bullseye trixie
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/image"
)

func main() {
	dir := flag.String("dir", "bin/vm", "directory to write to, which also keeps downloaded packages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := image.Build(ctx, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "guest-image:", err)
		os.Exit(1)
	}
}
