// Package config is what can be set: the flags of cinder-csi-driver and the options of cloud.conf, each described once. The
// generator and the documentation read the same description.
//
// Flags and options are upstream's, with upstream's defaults, so that the driver can take its place under an unchanged
// Deployment; what is added is marked so. Credentials are not read here: [Global] belongs to package cloud.
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

// Config is what the flags say.
type Config struct {
	Endpoint           string
	CloudConfig        []string // files; later ones win key by key
	CloudNames         []string // of [Global "name"] sections; "" is plain [Global]
	WithTopology       bool
	AdditionalTopology map[string]string
	Cluster            string
	HTTPEndpoint       string // empty means none
	Controller         bool
	Node               bool
	PVCAnnotations     bool
	Master             string // URL of the Kubernetes API; empty is that of the cluster
	UserAgent          []string
	Verbosity          int
	LogFormat          string // text or json

	DriverName    string
	Strict        bool
	WithCapacity  bool
	DefaultFSType string
	DrainTimeout  time.Duration
	Reads, Writes float64 // requests a second to one cloud; 0 is no limit

	SysRoot, DevRoot, ProcRoot string
	ConfigDriveDir             string
	MetadataURL                string

	ignored ignored
}

// ignored holds the flags that are accepted and do nothing.
type ignored struct {
	kubeconfig, nodeID, vmodule string
	qps                         float32
	burst                       int
	resync, flush               time.Duration
	noClient                    bool
}

// flags describes every flag, in the order of the help text. The part after "added:" is not upstream's.
var flags = []struct {
	name, usage string
	deprecated  string // why it does nothing
	hidden      bool
	bind        func(fs *pflag.FlagSet, c *Config, name, usage string)
}{
	{name: "endpoint", usage: "gRPC address to listen on: unix://PATH or, without the node service, tcp://HOST:PORT (required)", bind: text("", func(c *Config) *string { return &c.Endpoint })},
	{name: "cloud-config", usage: "cloud.conf `file`; may be given more than once, later files win key by key (required for the controller service)", bind: texts(nil, func(c *Config) *[]string { return &c.CloudConfig })},
	{name: "cloud-name", usage: "`name` of a [Global \"name\"] section to manage; may be given more than once; empty is plain [Global]", bind: texts([]string{""}, func(c *Config) *[]string { return &c.CloudNames })},
	{name: "with-topology", usage: "honour and report zones", bind: truth(true, func(c *Config) *bool { return &c.WithTopology })},
	{name: "additional-topology", usage: "further segments of a node's topology, `key=value`", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringToStringVar(&c.AdditionalTopology, name, map[string]string{}, usage)
	}},
	{name: "cluster", usage: "id of the cluster, written to the metadata of what is made in the cloud", bind: text("", func(c *Config) *string { return &c.Cluster })},
	{name: "http-endpoint", usage: "`address` to serve /metrics, /healthz and /readyz on; empty for none", bind: text("", func(c *Config) *string { return &c.HTTPEndpoint })},
	{name: "provide-controller-service", usage: "serve the controller RPCs", bind: truth(true, func(c *Config) *bool { return &c.Controller })},
	{name: "provide-node-service", usage: "serve the node RPCs", bind: truth(true, func(c *Config) *bool { return &c.Node })},
	{name: "pvc-annotations", usage: "read scheduler hints from claims' annotations; for external-provisioner's --extra-create-metadata, with the right to get persistentvolumeclaims", bind: truth(false, func(c *Config) *bool { return &c.PVCAnnotations })},
	{name: "user-agent", usage: "`token` to put before the driver's own in requests to OpenStack; may be given more than once", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringArrayVar(&c.UserAgent, name, nil, usage)
	}},
	{name: "v", usage: "log level: 4 and above also log the RPCs that only look, 5 and above requests and answers without secrets", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.IntVarP(&c.Verbosity, name, "v", 0, usage)
	}},

	{name: "master", usage: "`URL` of the Kubernetes API, for --pvc-annotations; empty is that of the cluster, with the pod's service account", bind: text("", func(c *Config) *string { return &c.Master })},
	{name: "kubeconfig", usage: "no effect: see --master", bind: text("", func(c *Config) *string { return &c.ignored.kubeconfig })},
	{name: "kube-api-qps", usage: "no effect: the Kubernetes API is asked once for each new volume", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.Float32Var(&c.ignored.qps, name, 5, usage)
	}},
	{name: "kube-api-burst", usage: "no effect, likewise", bind: func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.IntVar(&c.ignored.burst, name, 10, usage)
	}},
	{name: "min-resync-period", usage: "no effect: claims are not watched", bind: span(12*time.Hour, func(c *Config) *time.Duration { return &c.ignored.resync })},
	{name: "nodeid", usage: "id of the node", deprecated: "the id is always the server's, from its metadata", bind: text("", func(c *Config) *string { return &c.ignored.nodeID })},
	{name: "node-service-no-os-client", usage: "do without OpenStack on nodes", deprecated: "the node service never uses OpenStack credentials", bind: truth(false, func(c *Config) *bool { return &c.ignored.noClient })},
	{name: "vmodule", usage: "log levels per file", deprecated: "use -v", bind: text("", func(c *Config) *string { return &c.ignored.vmodule })},
	{name: "log-flush-frequency", usage: "how often logs are flushed", deprecated: "logs are not buffered", bind: span(5*time.Second, func(c *Config) *time.Duration { return &c.ignored.flush })},

	// added:
	{name: "driver-name", usage: "`name` the driver registers; the topology key follows it", bind: text(contract.DriverName, func(c *Config) *string { return &c.DriverName })},
	{name: "strict", usage: "refuse unknown keys of cloud.conf and unknown class parameters instead of warning", bind: truth(false, func(c *Config) *bool { return &c.Strict })},
	{name: "with-capacity", usage: "answer GetCapacity from the project's quotas; for external-provisioner's --enable-capacity", bind: truth(false, func(c *Config) *bool { return &c.WithCapacity })},
	{name: "default-fs-type", usage: "file `system` made where none is asked for: ext4, ext3, ext2, xfs or btrfs", bind: text("ext4", func(c *Config) *string { return &c.DefaultFSType })},
	{name: "drain-timeout", usage: "how long RPCs under way may take to finish after SIGTERM", bind: span(20*time.Second, func(c *Config) *time.Duration { return &c.DrainTimeout })},
	{name: "openstack-reads-per-second", usage: "reading requests a second sent to one cloud on average, twenty seconds' worth of them at once; fewer while the cloud answers 429 or 503; 0 for no limit", bind: number(100, func(c *Config) *float64 { return &c.Reads })},
	{name: "openstack-writes-per-second", usage: "changing requests a second, likewise", bind: number(50, func(c *Config) *float64 { return &c.Writes })},
	{name: "logging-format", usage: "text or json", bind: text("text", func(c *Config) *string { return &c.LogFormat })},
	{name: "sys-root", usage: "where sysfs is", hidden: true, bind: text("/sys", func(c *Config) *string { return &c.SysRoot })},
	{name: "dev-root", usage: "where device nodes are", hidden: true, bind: text("/dev", func(c *Config) *string { return &c.DevRoot })},
	{name: "proc-root", usage: "where procfs is", hidden: true, bind: text("/proc", func(c *Config) *string { return &c.ProcRoot })},
	{name: "metadata-url", usage: "where the metadata service is", hidden: true, bind: text("", func(c *Config) *string { return &c.MetadataURL })},
	{name: "config-drive-dir", usage: "directory with the config drive's content", hidden: true, bind: text("", func(c *Config) *string { return &c.ConfigDriveDir })},
}

func text(value string, field func(*Config) *string) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.StringVar(field(c), name, value, usage) }
}

func texts(value []string, field func(*Config) *[]string) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) {
		fs.StringSliceVar(field(c), name, value, usage)
	}
}

func truth(value bool, field func(*Config) *bool) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.BoolVar(field(c), name, value, usage) }
}

func number(value float64, field func(*Config) *float64) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.Float64Var(field(c), name, value, usage) }
}

func span(value time.Duration, field func(*Config) *time.Duration) func(*pflag.FlagSet, *Config, string, string) {
	return func(fs *pflag.FlagSet, c *Config, name, usage string) { fs.DurationVar(field(c), name, value, usage) }
}

// Bind adds every flag to fs, sets c to the defaults, and makes fs take "_" for "-".
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.SortFlags = false
	for _, f := range flags {
		f.bind(fs, c, f.name, f.usage)
		if f.deprecated != "" {
			_ = fs.MarkDeprecated(f.name, f.deprecated) // fails only for a flag that is not there
		}
		fs.Lookup(f.name).Hidden = f.hidden || f.deprecated != ""
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
}

// Validate says which flags cannot be used together, or at all.
func (c *Config) Validate() error {
	var all []error
	refuse := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if c.Endpoint == "" {
		refuse("--endpoint is required")
	}
	if scheme, _, _ := strings.Cut(c.Endpoint, "://"); c.Node && strings.EqualFold(scheme, "tcp") {
		refuse("--endpoint %q: the node service acts as root on this machine, and whoever reaches a TCP endpoint could use it; "+
			"listen on unix://PATH, or give --provide-node-service=false", c.Endpoint)
	}
	if c.Controller && len(c.CloudConfig) == 0 {
		refuse("--cloud-config is required for the controller service; give it, or --provide-controller-service=false")
	}
	if !c.Controller && !c.Node {
		refuse("neither service is to be provided: --provide-controller-service and --provide-node-service are both false")
	}
	if c.Controller && len(c.CloudNames) == 0 {
		refuse("--cloud-name is empty")
	}
	if c.Controller && c.WithCapacity && len(c.CloudNames) > 1 {
		refuse("--with-capacity is for one cloud, and --cloud-name names %d: a request for capacity does not say which it is about", len(c.CloudNames))
	}
	if !driverName(c.DriverName) {
		refuse("--driver-name %q is not a name as the CSI specification has it: up to 63 letters, digits, dashes and dots, the first and last a letter or digit", c.DriverName)
	}
	if !slices.Contains(fileSystems, c.DefaultFSType) {
		refuse("--default-fs-type %q is not one of %s", c.DefaultFSType, strings.Join(fileSystems, ", "))
	}
	if !(c.Reads >= 0 && c.Writes >= 0) { // not a number is neither
		refuse("--openstack-reads-per-second and --openstack-writes-per-second must not be below 0, which is no limit")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		refuse("--logging-format %q is neither text nor json", c.LogFormat)
	}
	return errors.Join(all...)
}

var fileSystems = []string{"ext2", "ext3", "ext4", "xfs", "btrfs"}

func driverName(name string) bool {
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

// TopologyKey is the topology key of the driver's name.
func (c *Config) TopologyKey() string { return contract.TopologyKeyOf(c.DriverName) }

// LogLevel turns klog's -v into slog's levels: from 4 on every RPC is logged, from 5 on their bodies.
func (c *Config) LogLevel() slog.Level {
	switch {
	case c.Verbosity >= 5:
		return slog.LevelDebug - 1
	case c.Verbosity == 4:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Ineffective says which flags were set and do nothing, though somebody may count on them.
func (c *Config) Ineffective() []string {
	if c.PVCAnnotations && c.ignored.kubeconfig != "" {
		return []string{"--kubeconfig: the Kubernetes API is asked with the pod's service account, or through a proxy that --master names"}
	}
	return nil
}
