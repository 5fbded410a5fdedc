// Command conformance tests a CSI driver where csi-sanity does not. It tests published nodes, pages during deletions, cancellation,
// concurrent callers, zones, health, backups, modification, and expansion of volumes in use. It knows only the endpoint of the driver; flags
// describe the cloud behind it.
//
//	go run ./test/suite/conformance --endpoint unix:///csi/csi.sock --nodes ID,ID --zones az1,az2
//
// It prints one line for each case and exits with 1 if any case failed. Every case deletes what it created.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// settings describe the cloud behind the endpoint. The program skips cases that need a missing setting.
type settings struct {
	nodes      []string          // IDs of the nodes to attach volumes to; the endpoint's own node if empty
	zones      []string          // values of the topology segment
	parameters map[string]string // of ordinary volumes
	shared     map[string]string // of volumes that several nodes can use
	backup     map[string]string // of snapshots that are backups
	mutable    map[string]string // mutable parameters for an ordinary volume
	fsType     string            // of the mounted volume
	stage      string            // directory for mounts, on the endpoint's node
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	var s settings
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	endpoint := flags.String("endpoint", "", "gRPC `address` of the driver: unix:///PATH or HOST:PORT (required)")
	only := flags.String("run", "", "run only cases whose name has this `text`")
	list := func(name, usage string, into *[]string) {
		flags.Func(name, usage, func(text string) error { *into = strings.Split(text, ","); return nil })
	}
	pairs := func(name, usage string, into *map[string]string) {
		flags.Func(name, usage, func(text string) error {
			key, value, ok := strings.Cut(text, "=")
			if !ok {
				return fmt.Errorf("want KEY=VALUE")
			}
			if *into == nil {
				*into = map[string]string{}
			}
			(*into)[key] = value
			return nil
		})
	}
	list("nodes", "`ids` of nodes to attach volumes to, separated by commas; the endpoint's own node if empty", &s.nodes)
	list("zones", "`values` of the topology segment to create volumes in, separated by commas", &s.zones)
	pairs("parameter", "`KEY=VALUE` of the StorageClass of ordinary volumes; may be repeated", &s.parameters)
	pairs("shared", "`KEY=VALUE` of the StorageClass of volumes for several nodes; may be repeated", &s.shared)
	pairs("backup", "`KEY=VALUE` of the VolumeSnapshotClass whose snapshots are backups; may be repeated", &s.backup)
	pairs("mutable", "`KEY=VALUE` of a VolumeAttributesClass that an ordinary volume can get; may be repeated", &s.mutable)
	flags.StringVar(&s.stage, "stage", "", "`directory` to mount volumes in, as root on the endpoint's node")
	flags.StringVar(&s.fsType, "fs-type", "ext4", "file `system` of the mounted volume; the expansion of a mounted ext4 needs CAP_SYS_RESOURCE")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *endpoint == "" || flags.NArg() > 0 {
		return false, fmt.Errorf("want --endpoint and no arguments")
	}
	conn, err := grpc.NewClient(*endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false, err
	}
	defer conn.Close()
	results, err := conform(ctx, conn, s, *only)
	if err != nil {
		return false, err
	}
	return report(out, results), nil
}

// report prints the results. It returns true if no case failed and at least one passed.
func report(out io.Writer, results []result) bool {
	counts := map[string]int{}
	for _, r := range results {
		counts[r.verdict()]++
		line := fmt.Sprintf("%-7s %7.1f s  %s", r.verdict(), r.took.Seconds(), r.name)
		if r.skip != "" {
			line += ": " + r.skip
		}
		if r.err != nil {
			line += ": " + strings.ReplaceAll(r.err.Error(), "\n", "; ")
		}
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", counts["pass"], counts["FAIL"], counts["skip"])
	return counts["FAIL"] == 0 && counts["pass"] > 0
}
