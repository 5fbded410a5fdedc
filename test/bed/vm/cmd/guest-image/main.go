// Command guest-image writes the kernel and the initial file system of the test guest.
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
	if err := image.Build(ctx, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "guest-image:", err)
		os.Exit(1)
	}
}
