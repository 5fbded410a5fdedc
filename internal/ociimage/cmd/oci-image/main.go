// Command oci-image writes the driver's container image as a tar that ctr, docker and skopeo read.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/ociimage"
)

func main() {
	driver := flag.String("driver", "bin/cinder-csi-driver", "the driver, statically linked for this machine's architecture")
	output := flag.String("output", "bin/cinder-csi-image.tar", "the file to write")
	name := flag.String("name", "ghcr.io/cinder-csi/cinder-csi-driver:dev", "the image's name and tag")
	cache := flag.String("cache", "bin/image", "directory that keeps downloaded packages")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "oci-image: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := build(ctx, *driver, *output, *name, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "oci-image:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, driver, output, name, cache string) error {
	created, err := epoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	program, err := os.ReadFile(driver)
	if err != nil {
		return err
	}
	image, err := ociimage.New(ctx, name, created, program, ociimage.Debian{Dir: cache})
	if err != nil {
		return err
	}
	if err := ociimage.Probe(ctx, image.Layers); err != nil {
		return err
	}
	var content bytes.Buffer
	if err := image.Write(&content); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(output+".new", content.Bytes(), 0o644), os.Rename(output+".new", output)); err != nil {
		return err
	}
	fmt.Printf("%s: %s, %s/%s, %.1f MiB\n", filepath.ToSlash(output), name, "linux", runtime.GOARCH, float64(content.Len())/(1<<20))
	return nil
}

// epoch reads SOURCE_DATE_EPOCH (reproducible-builds.org): seconds; without it the image is of 1970, equal every time.
func epoch(text string) (time.Time, error) {
	if text == "" {
		text = "0"
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
