// Command oci-image writes the container image of the driver, or of the generator, as a tar that ctr, docker and skopeo read.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

func main() {
	drivers := flag.String("driver", "bin/cinder-csi-driver",
		"the statically linked driver; several, separated by commas, make one image for all their architectures (amd64, arm64)")
	generators := flag.String("generator", "", "the statically linked generator: makes its image instead of the driver image; several as with -driver")
	output := flag.String("output", "bin/cinder-csi-image.tar", "the file to write")
	name := flag.String("name", "registry.invalid/cinder-csi/cinder-csi-driver:dev", "the image name and tag")
	cache := flag.String("cache", "bin/image", "directory that keeps downloaded packages")
	sources := flag.String("debian-sources", "tools/image/debian13.sources", "deb822 file with the Debian of the packages; empty: this machine's apt sources")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "oci-image: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	programs, make := *drivers, image.New
	if *generators != "" {
		programs, make = *generators, image.NewGenerator
	}
	if err := build(ctx, make, strings.Split(programs, ","), *output, *name, image.Debian{Dir: *cache, Sources: *sources}); err != nil {
		fmt.Fprintln(os.Stderr, "oci-image:", err)
		os.Exit(1)
	}
}

// maker makes the image of one program.
type maker func(ctx context.Context, program []byte, debian image.Debian) (image.Image, error)

func build(ctx context.Context, make maker, programs []string, output, name string, debian image.Debian) error {
	created, err := epoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	archive := image.Archive{Name: name, Created: created}
	var platforms []string
	for _, program := range programs {
		img, err := buildOne(ctx, make, program, debian)
		if err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
		archive.Images = append(archive.Images, img)
		platforms = append(platforms, "linux/"+img.Architecture)
	}
	var content bytes.Buffer
	if err := archive.Write(&content); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(output+".new", content.Bytes(), 0o644), os.Rename(output+".new", output)); err != nil {
		return err
	}
	fmt.Printf("%s: %s, %s, %.1f MiB\n", filepath.ToSlash(output), name, strings.Join(platforms, " "), float64(content.Len())/(1<<20))
	return nil
}

func buildOne(ctx context.Context, make maker, file string, debian image.Debian) (image.Image, error) {
	program, err := os.ReadFile(file)
	if err != nil {
		return image.Image{}, err
	}
	img, err := make(ctx, program, debian)
	if err != nil {
		return image.Image{}, err
	}
	if img.Architecture != runtime.GOARCH {
		fmt.Fprintf(os.Stderr, "oci-image: the programs of the %s image are not run: this machine is %s\n", img.Architecture, runtime.GOARCH)
		return img, nil
	}
	return img, img.Probe(ctx, nil, io.Discard)
}

// epoch reads SOURCE_DATE_EPOCH (reproducible-builds.org), in seconds. Without it, the creation time is 1970, which is the same every time.
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
