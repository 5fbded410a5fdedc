package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

type flag struct {
	name       string
	bind       binder // its field of Config, and its default
	help       string
	deprecated string // why it has no effect
	hidden     bool
}

// flags describes every flag, in the order of the help text. Upstream does not have those after "added:".
func (c *Config) flags() []flag {
	return []flag{
		{
			name: "endpoint", bind: text(&c.Endpoint, ""),
			help: "gRPC address to listen on: unix://PATH or, without the node service, tcp://HOST:PORT (required)",
		},
		{
			name: "cloud-config", bind: texts(&c.CloudConfig, nil),
			help: "cloud.conf `file`; may be repeated; keys of a later file replace those of an earlier one (required for the controller service)",
		},
		{
			name: "cloud-name", bind: texts(&c.CloudNames, []string{""}),
			help: "`name` of a [Global \"name\"] section to manage; may be repeated; empty means plain [Global]",
		},
		{name: "with-topology", bind: boolean(&c.WithTopology, true), help: "use the topology of requests, and report the zones of nodes and volumes"},
		{
			name: "additional-topology", bind: pairs(&c.AdditionalTopology, map[string]string{}),
			help: "more segments for the topology of a node, as `key=value`",
		},
		{
			name: "cluster", bind: text(&c.Cluster, ""),
			help: "id of the cluster; the driver writes it to the metadata of each object that it creates in the cloud",
		},
		{
			name: "http-endpoint", bind: text(&c.HTTPEndpoint, ""),
			help: "`address` for /metrics, /healthz, /readyz, /startupz and, for loopback clients only, /debug/operations; empty serves none",
		},
		{name: "provide-controller-service", bind: boolean(&c.Controller, true), help: "serve the controller RPCs"},
		{name: "provide-node-service", bind: boolean(&c.Node, true), help: "serve the node RPCs"},
		{
			name: "pvc-annotations", bind: boolean(&c.PVCAnnotations, false),
			help: "read scheduler hints from the annotations of claims; needs --extra-create-metadata of external-provisioner, and the right " +
				"to get persistentvolumeclaims",
		},
		{name: "user-agent", bind: eachText(&c.UserAgent, nil), help: "`text` before the driver's own user agent in requests to OpenStack; may be repeated"},
		{
			name: "v", bind: level(&c.Verbosity, 0),
			help: "log level; from 4 on the log has the read-only RPCs too, from 5 on also requests and answers, without secrets",
		},

		{
			name: "master", bind: text(&c.Master, ""),
			help: "`URL` of the Kubernetes API, for --pvc-annotations and --remove-startup-taint; empty means the API of the cluster, with the " +
				"service account of the pod",
		},
		{
			name: "kubeconfig", bind: text(&c.Kubeconfig, ""),
			help: "`file` that says how to log in to the Kubernetes API of --pvc-annotations and --remove-startup-taint; empty means the service " +
				"account of the pod. It may have no exec plugin",
		},
		{name: "kube-api-qps", bind: number32(&c.ignored.qps, 5), help: "no effect: the driver sends the Kubernetes API one request for each new volume"},
		{name: "kube-api-burst", bind: integer(&c.ignored.burst, 10), help: "no effect: see --kube-api-qps"},
		{name: "min-resync-period", bind: duration(&c.ignored.resync, 12*time.Hour), help: "no effect: the driver does not watch claims"},
		{
			name: "nodeid", bind: text(&c.ignored.nodeID, ""),
			help: "id of the node", deprecated: "the id of a node is always the id of its server, from the metadata",
		},
		{
			name: "node-service-no-os-client", bind: boolean(&c.ignored.noClient, false),
			help: "do not use OpenStack on nodes", deprecated: "the node service never uses OpenStack credentials",
		},
		{name: "vmodule", bind: text(&c.ignored.vmodule, ""), help: "log levels per file", deprecated: "use -v"},
		{
			name: "log-flush-frequency", bind: duration(&c.ignored.flush, 5*time.Second),
			help: "how often to flush the log", deprecated: "the log has no buffer",
		},

		// added:
		{name: "driver-name", bind: text(&c.DriverName, contract.DriverName), help: "`name` that the driver registers; the topology key contains it"},
		{name: "strict", bind: boolean(&c.Strict, false), help: "refuse unknown keys of cloud.conf and unknown class parameters instead of warning"},
		{
			name: "with-capacity", bind: boolean(&c.WithCapacity, false),
			help: "serve GetCapacity from the project's quotas; for --enable-capacity of external-provisioner",
		},
		{
			name: "default-fs-type", bind: text(&c.DefaultFSType, "ext4"),
			help: "file `system` of a volume whose class names none: ext4, ext3, ext2, xfs or btrfs",
		},
		{name: "drain-timeout", bind: duration(&c.DrainTimeout, 20*time.Second), help: "how long RPCs in progress may take after SIGTERM"},
		{
			name: "openstack-reads-per-second", bind: number(&c.Reads, 100),
			help: "average limit of read requests a second to one cloud, with bursts of 20 seconds' worth. After an answer 429 or 503 the " +
				"driver sends fewer. 0 means no limit",
		},
		{name: "openstack-writes-per-second", bind: number(&c.Writes, 50), help: "the same limit for requests that change something"},
		{
			name: "protect-other-clusters", bind: protection(&c.ProtectOthers, Off),
			help: "leave alone every volume, snapshot and backup with the mark of another cluster, which is the value of --cluster there. strict also " +
				"leaves alone what has no mark",
		},
		{
			name: "server-metadata", bind: pairs(&c.ServerMetadata, map[string]string{}),
			help: "attach volumes only to servers with this `key=value` as metadata or tag, and detach them only from those; may be repeated. It costs one more request for each server in ten minutes",
		},
		{
			name: "volume-metadata", bind: pairs(&c.VolumeMetadata, map[string]string{}),
			help: "metadata of each new volume, snapshot and backup, as `key=value`; may be repeated. The parameters of a class come before it",
		},
		{
			name: "remove-startup-taint", bind: boolean(&c.StartupTaint, false),
			help: "remove the taint DRIVER-NAME/agent-not-ready from a node once its CSINode shows the driver with an attach limit. For " +
				"the controller service",
		},
		{name: "pprof", bind: boolean(&c.Pprof, false), help: "serve Go's profiles at /debug/pprof/ of --http-endpoint, for loopback clients only"},
		{name: "logging-format", bind: text(&c.LogFormat, "text"), help: "text or json"},
		{name: "sys-root", bind: text(&c.SysRoot, "/sys"), hidden: true, help: "directory of sysfs"},
		{name: "dev-root", bind: text(&c.DevRoot, "/dev"), hidden: true, help: "directory of device nodes"},
		{name: "proc-root", bind: text(&c.ProcRoot, "/proc"), hidden: true, help: "directory of procfs"},
		{name: "metadata-url", bind: text(&c.MetadataURL, ""), hidden: true, help: "URL of the metadata service"},
		{name: "config-drive-dir", bind: text(&c.ConfigDriveDir, ""), hidden: true, help: "directory with the content of the config drive"},
	}
}

type binder func(fs *pflag.FlagSet, name, help string)

// The kinds of flags. Each takes the field for the value, and the default.
var (
	text     = kind((*pflag.FlagSet).StringVar)
	texts    = kind((*pflag.FlagSet).StringSliceVar)                                                     // commas separate values
	eachText = kind(func(fs *pflag.FlagSet, field *[]string, name string, value []string, help string) { // a comma is part of the value
		fs.StringArrayVar(field, name, value, help)
		fs.Lookup(name).Value = &noneIfEmpty{fs.Lookup(name).Value}
	})
	pairs = kind(func(fs *pflag.FlagSet, field *map[string]string, name string, value map[string]string, help string) {
		fs.StringToStringVar(field, name, value, help)
		fs.Lookup(name).Value = &noneIfEmpty{fs.Lookup(name).Value}
	})
	boolean  = kind((*pflag.FlagSet).BoolVar)
	integer  = kind((*pflag.FlagSet).IntVar)
	number   = kind((*pflag.FlagSet).Float64Var)
	number32 = kind((*pflag.FlagSet).Float32Var)
	duration = kind((*pflag.FlagSet).DurationVar)
	level    = kind(func(fs *pflag.FlagSet, field *int, name string, value int, help string) {
		fs.IntVarP(field, name, "v", value, help)
	})
)

func kind[T any](add func(fs *pflag.FlagSet, field *T, name string, value T, help string)) func(field *T, value T) binder {
	return func(field *T, value T) binder {
		return func(fs *pflag.FlagSet, name, help string) { add(fs, field, name, value, help) }
	}
}

// Bind adds every flag to fs and sets c to the defaults. In flag names fs then accepts "_" for "-".
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.SortFlags = false
	for _, f := range c.flags() {
		f.bind(fs, f.name, f.help)
		if f.deprecated != "" {
			_ = fs.MarkDeprecated(f.name, f.deprecated) // fails only for an unknown flag
		}
		fs.Lookup(f.name).Hidden = f.hidden || f.deprecated != ""
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
}

// noneIfEmpty is a list that may be empty: the arguments of a container cannot leave out a flag whose environment variable is empty.
type noneIfEmpty struct{ pflag.Value }

// Set implements pflag.Value.
func (v *noneIfEmpty) Set(text string) error {
	if text == "" {
		return nil
	}
	return v.Value.Set(text)
}
