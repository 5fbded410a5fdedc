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
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

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
	Master             string // URL of the Kubernetes API; empty means that of Kubeconfig, or the API of the cluster
	Kubeconfig         string // file; empty means the service account of the pod
	UserAgent          []string
	Verbosity          int
	LogFormat          string // text or json
	ProtectOthers      Protection
	ServerMetadata     map[string]string // what a server must have
	VolumeMetadata     map[string]string // of each new volume, snapshot and backup
	StartupTaint       bool              // remove the start-up taint of nodes where the driver is ready
	Pprof              bool              // serve profiles of the process to loopback clients of HTTPEndpoint

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
	nodeID, vmodule string
	qps             float32
	burst           int
	resync, flush   time.Duration
	noClient        bool
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
	if c.Strict && c.Exposed() != "" {
		refuse("%s, which --strict refuses", c.Exposed())
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
	if c.ProtectOthers != Off && c.Cluster == "" {
		refuse("--protect-other-clusters needs --cluster: without an own mark the driver cannot tell the volumes of other clusters from its own")
	}
	for _, key := range slices.Sorted(maps.Keys(c.VolumeMetadata)) {
		if err := contract.CheckMetadata(key, c.VolumeMetadata[key]); err != nil {
			refuse("--volume-metadata: %w", err)
		}
	}
	if c.Controller && c.WithCapacity && len(c.CloudNames) > 1 {
		refuse("--with-capacity works with one cloud, but --cloud-name names %d: a request for capacity does not name its cloud", len(c.CloudNames))
	}
	if !driverName.MatchString(c.DriverName) {
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

// Exposed says why others on the network can use the driver; empty where they cannot.
func (c *Config) Exposed() string {
	scheme, address, _ := strings.Cut(c.Endpoint, "://")
	if !strings.EqualFold(scheme, "tcp") {
		return ""
	}
	host, _, _ := net.SplitHostPort(address)
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("--endpoint %q: everybody who reaches this address can change every volume of the project; listen on unix://PATH or a loopback address", c.Endpoint)
}

var driverName = regexp.MustCompile(`^[0-9a-zA-Z]([0-9a-zA-Z.-]{0,61}[0-9a-zA-Z])?$`)

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
