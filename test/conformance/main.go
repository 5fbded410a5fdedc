// Command conformance tries on a CSI driver what csi-sanity does not: published nodes, pages while volumes go, cancellation, many
// callers at once, zones, health, backups, changes of volumes, growth while in use. It knows nothing of the driver but its endpoint;
// flags tell what the cloud behind it has.
//
//	go run ./test/conformance --endpoint unix:///csi/csi.sock --nodes ID,ID --zones az1,az2
//
// It prints one line a case and exits with 1 if any failed. Every case takes back what it made.
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

// settings are what the cloud behind the endpoint has; cases that need what is missing are skipped.
type settings struct {
	nodes      []string          // ids that volumes can be attached to; without any, the endpoint's own node
	zones      []string          // values of the topology segment
	parameters map[string]string // of ordinary volumes
	shared     map[string]string // of volumes that several nodes can have
	backup     map[string]string // of snapshots that are backups
	mutable    map[string]string // what an ordinary volume can be changed to
	fsType     string            // of the volume that is mounted
	stage      string            // directory for mounts, where the endpoint's node has the devices
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
	list("zones", "`values` of the topology segment to make volumes in, separated by commas", &s.zones)
	pairs("parameter", "`KEY=VALUE` of the StorageClass of ordinary volumes; may be repeated", &s.parameters)
	pairs("shared", "`KEY=VALUE` of the StorageClass of volumes for several nodes; may be repeated", &s.shared)
	pairs("backup", "`KEY=VALUE` of the VolumeSnapshotClass whose snapshots are backups; may be repeated", &s.backup)
	pairs("mutable", "`KEY=VALUE` of a VolumeAttributesClass that an ordinary volume can get; may be repeated", &s.mutable)
	flags.StringVar(&s.stage, "stage", "", "`directory` to mount volumes in, as root on the endpoint's node")
	flags.StringVar(&s.fsType, "fs-type", "ext4", "file `system` of the volume that is mounted; a mounted ext4 grows only with CAP_SYS_RESOURCE")
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

// report prints the results and tells whether none failed and one passed.
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
