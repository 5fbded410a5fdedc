// Command release builds the files of a version into a directory and publishes nothing. Run it at the top of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cinder-csi/cinder-csi/tools/release"
)

func main() {
	o := release.Options{Report: os.Stdout}
	flag.StringVar(&o.Version, "version", "", "the version, such as v0.1.0; without it, the version of the chart")
	flag.StringVar(&o.Output, "output", "dist", "the directory to write; an earlier release in it is replaced")
	flag.StringVar(&o.Cache, "cache", "bin/image", "directory that keeps downloaded Debian packages")
	flag.StringVar(&o.Sources, "debian-sources", "", "deb822 file in place of this machine's apt sources")
	flag.StringVar(&o.Builder, "builder", "", "address of the pipeline that builds, for the provenance; without it, a person's machine")
	flag.StringVar(&o.Home, "home", "", "address of the repository that has the commit, for the provenance")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "release: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := release.Build(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
