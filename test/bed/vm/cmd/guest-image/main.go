// Command guest-image writes kernels and initial file systems of the test guest.
//
//	guest-image -dir bin/vm bullseye trixie
//	guest-image -dir bin/vm -programs bin -join DIR trixie    what a server boots, with the driver and the agent, into DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/image"
)

func main() {
	dir := flag.String("dir", "bin/vm", "directory to write to, which also keeps downloaded packages")
	join := flag.String("join", "", "directory for the kernel, the initial file system with the programs, and the disk of a server")
	programs := flag.String("programs", "bin", "directory of the driver")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *join, *programs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "guest-image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, join, programs string, kernels []string) error {
	if join == "" {
		return image.Build(ctx, dir, kernels)
	}
	if len(kernels) != 1 {
		return fmt.Errorf("want one kernel, got %q", kernels)
	}
	i := guest.Image{Dir: dir, Driver: filepath.Join(programs, "cinder-csi-driver"), Program: filepath.Join(dir, "guest-agent")}
	return i.Write(ctx, kernels[0], join)
}
