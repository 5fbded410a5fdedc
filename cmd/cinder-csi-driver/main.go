// Command cinder-csi-driver is a CSI driver for OpenStack Cinder. It takes the flags of upstream's cinder-csi-plugin.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver"
	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
)

// version is set by the linker for releases.
var version = ""

// collectAt is how much the heap grows, in percent, before the runtime collects garbage. GOGC replaces it. With Go's default of 100, the
// memory peak on a cloud that answers with pages of 8 MiB reaches 129 MiB (test/suite/attack/hostilecloud). With 50 the peak stays below 100 MiB.
// The cost in processor time does not matter, because the driver hardly uses the processor.
const collectAt = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	args := slices.Concat(os.Args[1:], config.ExtraArgs(os.Getenv(config.ExtraArgsVariable)))
	os.Exit(run(ctx, args, os.Stdout, os.Stderr))
}

// run returns the exit code: 0 after a clean end, 1 otherwise, as upstream's plugin does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == guestTokenCommand {
		return guestToken(ctx, args[1:], stderr)
	}
	var cfg config.Config
	flags := pflag.NewFlagSet("cinder-csi-driver", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	cfg.Bind(flags)
	showVersion := flags.Bool("version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return config.ExitOK
	case err != nil:
		fmt.Fprintln(stderr, "cinder-csi-driver:", err)
		return config.ExitFailure
	case flags.NArg() == 1 && flags.Arg(0) == "access-rules":
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(openstack.AccessRules()) // it fails only if the reader has closed stdout
		return config.ExitOK
	case flags.NArg() == 1 && flags.Arg(0) == awaitDetachedCommand && os.Getenv(nodeVariable) != "":
		if name := os.Getenv(driverVariable); name != "" && !flags.Changed("driver-name") {
			cfg.DriverName = name
		}
		return awaitDetached(ctx, cfg, os.Getenv(nodeVariable), stderr)
	case flags.NArg() == 2 && flags.Arg(0) == awaitDetachedCommand:
		return awaitDetached(ctx, cfg, flags.Arg(1), stderr)
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "cinder-csi-driver: unexpected argument %q; all settings are flags, and the commands are access-rules, await-detached [NODE] and guest-token\n", flags.Arg(0))
		return config.ExitFailure
	case *showVersion:
		fmt.Fprintln(stdout, "cinder-csi-driver", buildVersion())
		return config.ExitOK
	}
	if n := processors(cfg, os.Getenv("GOMAXPROCS")); n > 0 {
		runtime.GOMAXPROCS(n)
	}
	if err := driver.Run(ctx, cfg, driver.Dependencies{Version: buildVersion(), Stderr: stderr}); err != nil {
		fmt.Fprintln(stderr, "cinder-csi-driver:", err)
		return config.ExitFailure
	}
	return config.ExitOK
}

// processors is how many processors run the Go code of this role; 0 leaves that to Go. GOMAXPROCS replaces it. Go keeps memory for each
// processor. With 64 of them the node role takes 26 MiB, and 22 if it uses one. It waits for disks and programs, and hardly calculates.
func processors(cfg config.Config, gomaxprocs string) int {
	if cfg.Controller || gomaxprocs != "" {
		return 0
	}
	return 1
}

// Without the argument NODE, await-detached reads these variables. Kubernetes replaces $(NAME) in the arguments of a container, but not in the
// command of a hook.
const (
	awaitDetachedCommand = "await-detached"
	nodeVariable         = "NODE_NAME"
	driverVariable       = "DRIVER_NAME"
)

// awaitDetached is the preStop hook of the node role. While the node is being drained, it waits until no volume of the driver is attached
// there, for driver.LongestHook at most.
func awaitDetached(ctx context.Context, cfg config.Config, node string, stderr io.Writer) int {
	if err := driver.AwaitDetached(ctx, cfg.DriverName, node, cfg.Master, stderr); err != nil {
		fmt.Fprintln(stderr, "cinder-csi-driver: await-detached:", err)
		return config.ExitFailure
	}
	return config.ExitOK
}

// buildVersion is the version from the linker, or else the module version, or else the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}
