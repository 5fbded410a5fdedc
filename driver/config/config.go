// Package config describes the flags of cinder-csi-driver and the options of cloud.conf, each once. The generator and the documentation
// read the same description.
//
// Flags and options have the names and defaults of upstream, so that the driver can replace it under an unchanged Deployment. Additions are
// marked as such. Package cloud reads the credentials in [Global].
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Config holds the values of the flags.
type Config struct {
	Endpoint           string
	CloudConfig        []string // files; keys of a later one replace those of an earlier one
	CloudNames         []string // of [Global "name"] sections; "" means plain [Global]
	WithTopology       bool
	AdditionalTopology map[string]string
	Cluster            string
	HTTPEndpoint       string // empty serves none
	Controller         bool
	Node               bool
	PVCAnnotations     bool
	Master             string // URL of the Kubernetes API; empty means the API of the cluster
	UserAgent          []string
	Verbosity          int
	LogFormat          string // text or json
	StartupTaint       bool   // remove the start-up taint of nodes where the driver is ready
	Pprof              bool   // serve profiles of the process to loopback clients of HTTPEndpoint

	DriverName    string
	Strict        bool
	WithCapacity  bool
	DefaultFSType string
	DrainTimeout  time.Duration
	Reads, Writes float64 // requests a second to one cloud; 0 means no limit

	SysRoot, DevRoot, ProcRoot string
	ConfigDriveDir             string
	MetadataURL                string

	ignored ignored
}

// ignored holds the flags without an effect.
type ignored struct {
	kubeconfig, nodeID, vmodule string
	qps                         float32
	burst                       int
	resync, flush               time.Duration
	noClient                    bool
}

// flags describes every flag, in the order of the help text. Upstream does not have those after "added:".
var flags = []struct {
	name, usage string
	deprecated  string // why it has no effect
	hidden      bool
	bind        func(fs *pflag.FlagSet, c *Config, name, usage string)
}{
	{name: "endpoint", usage: "gRPC address to listen on: unix://PATH or, without the node service, tcp://HOST:PORT (required)", bind: textFlag("", func(c *Config) *string { return &c.Endpoint })},
	{name: "cloud-config", usage: "cloud.conf `file`; may be repeated; keys of a later file replace those of an earlier one (required for the controller service)", bind: textsFlag(nil, func(c *Config) *[]string { return &c.CloudConfig })},
	{name: "cloud-name", usage: "`name` of a [Global \"name\"] section to manage; may be repeated; empty means plain [Global]", bind: textsFlag([]string{""}, func(c *Config) *[]string { return &c.CloudNames })},
	{name: "with-topology", usage: "use the topology of requests, and report the zones of nodes and volumes", bind: boolFlag(true, func(c *Config) *bool { return &c.WithTopology })},
	{name: "additional-topology", usage: "more segments for the topology of a node, as `key=value`", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringToStringVar(&c.AdditionalTopology, name, map[string]string{}, usage)
	}},
	{name: "cluster", usage: "id of the cluster; the driver writes it to the metadata of each object that it creates in the cloud", bind: textFlag("", func(c *Config) *string { return &c.Cluster })},
	{name: "http-endpoint", usage: "`address` for /metrics, /healthz, /readyz, /startupz and, for loopback clients only, /debug/operations; empty serves none", bind: textFlag("", func(c *Config) *string { return &c.HTTPEndpoint })},
	{name: "provide-controller-service", usage: "serve the controller RPCs", bind: boolFlag(true, func(c *Config) *bool { return &c.Controller })},
	{name: "provide-node-service", usage: "serve the node RPCs", bind: boolFlag(true, func(c *Config) *bool { return &c.Node })},
	{name: "pvc-annotations", usage: "read scheduler hints from the annotations of claims; needs --extra-create-metadata of external-provisioner, and the right to get persistentvolumeclaims", bind: boolFlag(false, func(c *Config) *bool { return &c.PVCAnnotations })},
	{name: "user-agent", usage: "`text` before the driver's own user agent in requests to OpenStack; may be repeated", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringArrayVar(&c.UserAgent, name, nil, usage)
	}},
	{name: "v", usage: "log level; from 4 on the log has the read-only RPCs too, from 5 on also requests and answers, without secrets", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.IntVarP(&c.Verbosity, name, "v", 0, usage)
	}},

	{name: "master", usage: "`URL` of the Kubernetes API, for --pvc-annotations and --remove-startup-taint; empty means the API of the cluster, with the service account of the pod", bind: textFlag("", func(c *Config) *string { return &c.Master })},
	{name: "kubeconfig", usage: "no effect: see --master", bind: textFlag("", func(c *Config) *string { return &c.ignored.kubeconfig })},
	{name: "kube-api-qps", usage: "no effect: the driver sends the Kubernetes API one request for each new volume", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.Float32Var(&c.ignored.qps, name, 5, usage)
	}},
	{name: "kube-api-burst", usage: "no effect: see --kube-api-qps", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.IntVar(&c.ignored.burst, name, 10, usage)
	}},
	{name: "min-resync-period", usage: "no effect: the driver does not watch claims", bind: durationFlag(12*time.Hour, func(c *Config) *time.Duration { return &c.ignored.resync })},
	{name: "nodeid", usage: "id of the node", deprecated: "the id of a node is always the id of its server, from the metadata", bind: textFlag("", func(c *Config) *string { return &c.ignored.nodeID })},
	{name: "node-service-no-os-client", usage: "do not use OpenStack on nodes", deprecated: "the node service never uses OpenStack credentials", bind: boolFlag(false, func(c *Config) *bool { return &c.ignored.noClient })},
	{name: "vmodule", usage: "log levels per file", deprecated: "use -v", bind: textFlag("", func(c *Config) *string { return &c.ignored.vmodule })},
	{name: "log-flush-frequency", usage: "how often to flush the log", deprecated: "the log has no buffer", bind: durationFlag(5*time.Second, func(c *Config) *time.Duration { return &c.ignored.flush })},

	// added:
	{name: "driver-name", usage: "`name` that the driver registers; the topology key contains it", bind: textFlag(contract.DriverName, func(c *Config) *string { return &c.DriverName })},
	{name: "strict", usage: "refuse unknown keys of cloud.conf and unknown class parameters instead of warning", bind: boolFlag(false, func(c *Config) *bool { return &c.Strict })},
	{name: "with-capacity", usage: "serve GetCapacity from the project's quotas; for --enable-capacity of external-provisioner", bind: boolFlag(false, func(c *Config) *bool { return &c.WithCapacity })},
	{name: "default-fs-type", usage: "file `system` of a volume whose class names none: ext4, ext3, ext2, xfs or btrfs", bind: textFlag("ext4", func(c *Config) *string { return &c.DefaultFSType })},
	{name: "drain-timeout", usage: "how long RPCs in progress may take after SIGTERM", bind: durationFlag(20*time.Second, func(c *Config) *time.Duration { return &c.DrainTimeout })},
	{name: "openstack-reads-per-second", usage: "average limit of read requests a second to one cloud, with bursts of 20 seconds' worth. After an answer 429 or 503 the driver sends fewer. 0 means no limit", bind: numberFlag(100, func(c *Config) *float64 { return &c.Reads })},
	{name: "openstack-writes-per-second", usage: "the same limit for requests that change something", bind: numberFlag(50, func(c *Config) *float64 { return &c.Writes })},
	{name: "remove-startup-taint", usage: "remove the taint DRIVER-NAME/agent-not-ready from a node once its CSINode shows the driver with an attach limit. It needs the right to list, watch and patch nodes, and to get csinodes. For the controller service", bind: boolFlag(false, func(c *Config) *bool { return &c.StartupTaint })},
	{name: "pprof", usage: "serve Go's profiles at /debug/pprof/ of --http-endpoint, for loopback clients only", bind: boolFlag(false, func(c *Config) *bool { return &c.Pprof })},
	{name: "logging-format", usage: "text or json", bind: textFlag("text", func(c *Config) *string { return &c.LogFormat })},
	{name: "sys-root", usage: "directory of sysfs", hidden: true, bind: textFlag("/sys", func(c *Config) *string { return &c.SysRoot })},
	{name: "dev-root", usage: "directory of device nodes", hidden: true, bind: textFlag("/dev", func(c *Config) *string { return &c.DevRoot })},
	{name: "proc-root", usage: "directory of procfs", hidden: true, bind: textFlag("/proc", func(c *Config) *string { return &c.ProcRoot })},
	{name: "metadata-url", usage: "URL of the metadata service", hidden: true, bind: textFlag("", func(c *Config) *string { return &c.MetadataURL })},
	{name: "config-drive-dir", usage: "directory with the content of the config drive", hidden: true, bind: textFlag("", func(c *Config) *string { return &c.ConfigDriveDir })},
}

func textFlag(value string, field func(*Config) *string) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.StringVar(field(c), name, value, usage) }
}

func textsFlag(value []string, field func(*Config) *[]string) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringSliceVar(field(c), name, value, usage)
	}
}

func boolFlag(value bool, field func(*Config) *bool) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.BoolVar(field(c), name, value, usage) }
}

func numberFlag(value float64, field func(*Config) *float64) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.Float64Var(field(c), name, value, usage) }
}

func durationFlag(value time.Duration, field func(*Config) *time.Duration) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.DurationVar(field(c), name, value, usage) }
}

// Bind adds every flag to fs and sets c to the defaults. In flag names fs then accepts "_" for "-".
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.SortFlags = false
	for _, f := range flags {
		f.bind(fs, c, f.name, f.usage)
		if f.deprecated != "" {
			_ = fs.MarkDeprecated(f.name, f.deprecated) // fails only for an unknown flag
		}
		fs.Lookup(f.name).Hidden = f.hidden || f.deprecated != ""
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
}

// Validate reports invalid flags, and flags that exclude each other.
func (c *Config) Validate() error {
	var all []error
	refuse := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if c.Endpoint == "" {
		refuse("--endpoint is required")
	}
	if scheme, _, _ := strings.Cut(c.Endpoint, "://"); c.Node && strings.EqualFold(scheme, "tcp") {
		refuse("--endpoint %q: the node service runs as root, and others on the network could use a TCP endpoint; "+
			"listen on unix://PATH, or set --provide-node-service=false", c.Endpoint)
	}
	if c.Controller && len(c.CloudConfig) == 0 {
		refuse("--cloud-config is required for the controller service; set it, or --provide-controller-service=false")
	}
	if c.StartupTaint && !c.Controller {
		refuse("--remove-startup-taint is for the controller service: the node service has no rights in the cluster")
	}
	if !c.Controller && !c.Node {
		refuse("the driver has no service to provide: --provide-controller-service and --provide-node-service are both false")
	}
	if c.Controller && len(c.CloudNames) == 0 {
		refuse("--cloud-name is empty")
	}
	if c.Controller && c.WithCapacity && len(c.CloudNames) > 1 {
		refuse("--with-capacity works with one cloud, but --cloud-name names %d: a request for capacity does not name its cloud", len(c.CloudNames))
	}
	if !validDriverName(c.DriverName) {
		refuse("--driver-name %q is invalid: the CSI specification allows up to 63 letters, digits, dashes and dots, with a letter or digit at both ends", c.DriverName)
	}
	if !slices.Contains(contract.FileSystems, c.DefaultFSType) {
		refuse("--default-fs-type %q is not one of %s", c.DefaultFSType, strings.Join(contract.FileSystems, ", "))
	}
	if !(c.Reads >= 0 && c.Writes >= 0) { // also refuses NaN
		refuse("--openstack-reads-per-second and --openstack-writes-per-second must not be below 0; 0 means no limit")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		refuse("--logging-format %q is neither text nor json", c.LogFormat)
	}
	return errors.Join(all...)
}

func validDriverName(name string) bool {
	if name == "" || len(name) > 63 {
		return false
	}
	for i, c := range name {
		inside := (c == '-' || c == '.') && i > 0 && i < len(name)-1
		if !inside && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// TopologyKey is the topology key for the driver name.
func (c *Config) TopologyKey() string { return contract.TopologyKeyOf(c.DriverName) }

// LogLevel converts klog's -v to a level of slog: from 4 on the log has every RPC, from 5 on also the bodies.
func (c *Config) LogLevel() slog.Level {
	switch {
	case c.Verbosity >= 5:
		return slog.LevelDebug - 1
	case c.Verbosity == 4:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Ineffective lists the flags without an effect that somebody set and may rely on.
func (c *Config) Ineffective() []string {
	if c.PVCAnnotations && c.ignored.kubeconfig != "" {
		return []string{"--kubeconfig: the driver uses the service account of the pod, or a proxy that --master names"}
	}
	return nil
}

// ExtraArgsVariable is the environment variable with further flags, one a line. A bundle can add flags with it without changing the
// arguments of the container. Where a flag is in both, that of the variable counts.
const ExtraArgsVariable = "CINDER_CSI_EXTRA_ARGS"

// ExtraArgs reads the value of ExtraArgsVariable. Blank lines and white space around a flag do not count.
func ExtraArgs(lines string) []string {
	var args []string
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			args = append(args, line)
		}
	}
	return args
}
