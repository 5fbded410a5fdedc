// Command publish takes the steps between a built release and its users: it checks the tag, pushes images and chart, and lays out the downloads.
// Run it at the top of the repository. tools/release/sign.sh signs afterwards.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinder-csi/cinder-csi/tools/release"
	"github.com/cinder-csi/cinder-csi/tools/release/publish"
)

const usage = "use: publish check -tag TAG | publish push -tag TAG -registry HOST/PATH -home URL -downloads URL [-dist DIR] [-output DIR] [-plain-http]"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "check" && args[0] != "push" {
		return fmt.Errorf("unknown step %q: %s", args, usage)
	}
	flags := flag.NewFlagSet("publish", flag.ExitOnError)
	tag := flags.String("tag", "", "the tag of the release, such as v0.1.0")
	registry := flags.String("registry", "", "where images and chart go: host and path")
	plain := flags.Bool("plain-http", false, "the registry has no TLS")
	var a publish.Assets
	flags.StringVar(&a.Dist, "dist", "dist", "the built release")
	flags.StringVar(&a.Output, "output", "downloads", "a new directory for the downloads")
	flags.StringVar(&a.Home, "home", "", "address of the repository")
	flags.StringVar(&a.Downloads, "downloads", "", "address from which people download the files")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := release.CheckTag(".", *tag); err != nil || args[0] == "check" {
		return err
	}
	if *registry == "" || a.Home == "" || a.Downloads == "" {
		return fmt.Errorf("push needs -registry, -home and -downloads: %s", usage)
	}
	a.Version = *tag
	pushed, err := publish.Push(ctx, publish.Registry{Prefix: *registry, Insecure: *plain}, a.Dist, *tag)
	if err != nil {
		return err
	}
	a.Pushed = pushed
	for _, p := range pushed {
		fmt.Println(p.Kind, p.Tag, p.Ref, p.Platform)
	}
	return a.Write()
}
