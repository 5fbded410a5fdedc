package config

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

func parse(t *testing.T, args ...string) (Config, error) {
	t.Helper()
	var c Config
	fs := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	fs.SetOutput(t.Output())
	c.Bind(fs)
	return c, fs.Parse(args)
}

// upstreamFlags are the flags of upstream's cinder-csi-plugin 1.36 with their defaults.
var upstreamFlags = map[string]string{
	"endpoint": "", "cloud-config": "[]", "cloud-name": "[]", "with-topology": "true", "additional-topology": "[]", "cluster": "",
	"http-endpoint": "", "provide-controller-service": "true", "provide-node-service": "true", "pvc-annotations": "false", "master": "",
	"kubeconfig": "", "kube-api-qps": "5", "kube-api-burst": "10", "min-resync-period": "12h0m0s", "user-agent": "[]", "nodeid": "",
	"node-service-no-os-client": "false", "v": "0", "vmodule": "", "log-flush-frequency": "5s",
}

func TestUpstreamsFlagsAreThereWithUpstreamsDefaults(t *testing.T) {
	var c Config
	fs := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	c.Bind(fs)
	for name, value := range upstreamFlags {
		f := fs.Lookup(name)
		if f == nil {
			t.Errorf("--%s is missing", name)
		} else if f.DefValue != value {
			t.Errorf("--%s: want default %q, got %q", name, value, f.DefValue)
		}
	}
	if diff := cmp.Diff([]string{""}, c.CloudNames); diff != "" {
		t.Error("cloud names, -want +got\n", diff)
	}
}

func TestEveryFlagOfUpstreamMeansSomethingOrSaysThatItDoesNot(t *testing.T) {
	values := map[string]string{"with-topology": "false", "additional-topology": "a=b", "provide-controller-service": "false", "provide-node-service": "false", "kube-api-qps": "7", "kube-api-burst": "7", "min-resync-period": "7h", "log-flush-frequency": "7s", "v": "7", "pvc-annotations": "true", "node-service-no-os-client": "true"}
	forAnnotations := []string{"kube-api-qps", "kube-api-burst", "min-resync-period"} // upstream reads them for --pvc-annotations alone
	before, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	before.ignored = ignored{}
	for name := range upstreamFlags {
		value := values[name]
		if value == "" {
			value = "x"
		}
		var c Config
		var said bytes.Buffer
		fs := pflag.NewFlagSet("driver", pflag.ContinueOnError)
		fs.SetOutput(&said)
		c.Bind(fs)
		if err := fs.Parse([]string{"--" + name + "=" + value}); err != nil {
			t.Errorf("--%s: %v", name, err)
		}
		ineffective := strings.Contains(said.String(), "deprecated") || slices.Contains(forAnnotations, name)
		c.ignored = ignored{}
		if changes := !reflect.DeepEqual(before, c); changes == ineffective {
			t.Errorf("--%s changes the configuration: %v; it is said to do nothing: %v", name, changes, ineffective)
		}
	}
}

// The argument lists of upstream's manifests and of OpenShift's operator.
func TestUpstreamsArgumentsAreTaken(t *testing.T) {
	c, err := parse(t, "--endpoint=unix://csi/csi.sock", "--cloud-config=/etc/config/cloud.conf", "--cluster=kubernetes", "--pvc-annotations", "--v=1")
	if err != nil || c.Validate() != nil {
		t.Fatal(err, c.Validate())
	}
	want := []any{"unix://csi/csi.sock", []string{"/etc/config/cloud.conf"}, "kubernetes", true, 1, true, true}
	if diff := cmp.Diff(want, []any{c.Endpoint, c.CloudConfig, c.Cluster, c.PVCAnnotations, c.Verbosity, c.Controller, c.Node}); diff != "" {
		t.Error("-want +got\n", diff)
	}
	c, err = parse(t, "--pvc-annotations", "--kubeconfig=/etc/kubeconfig")
	if err != nil || c.Kubeconfig != "/etc/kubeconfig" {
		t.Errorf("--kubeconfig is %q: %v", c.Kubeconfig, err)
	}
	c, err = parse(t, "--nodeid=n1", "--provide_controller_service=false", "--node_service_no_os_client=true", "--endpoint", "unix:///x", "-v=5", "--vmodule=a=5", "--log_flush_frequency=1s")
	if err != nil || c.Validate() != nil || c.Controller || c.Verbosity != 5 {
		t.Error(err, c.Validate(), c)
	}
}

func TestRepeatedFlags(t *testing.T) {
	c, err := parse(t, "--cloud-config=a", "--cloud-config=b,c", "--cloud-name=x", "--cloud-name=y", "--user-agent=one, two", "--user-agent=three",
		"--additional-topology=region=R1", "--additional-topology=rack=7")
	if err != nil {
		t.Fatal(err)
	}
	want := []any{[]string{"a", "b", "c"}, []string{"x", "y"}, []string{"one, two", "three"}, map[string]string{"region": "R1", "rack": "7"}}
	if diff := cmp.Diff(want, []any{c.CloudConfig, c.CloudNames, c.UserAgent, c.AdditionalTopology}); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func TestFlagsThatCannotBe(t *testing.T) {
	good := []string{"--endpoint=unix:///x", "--cloud-config=a"}
	for name, test := range map[string]struct {
		args    []string
		problem string
	}{
		"no endpoint":       {[]string{"--cloud-config=a"}, "--endpoint"},
		"no cloud config":   {[]string{"--endpoint=unix:///x"}, "--cloud-config"},
		"nothing to serve":  {[]string{"--endpoint=unix:///x", "--provide-controller-service=false", "--provide-node-service=false"}, "no service to provide"},
		"capacity of two":   {append(good, "--with-capacity", "--cloud-name=x,y"), "--with-capacity"},
		"driver name":       {append(good, "--driver-name=-a"), "--driver-name"},
		"long driver name":  {append(good, "--driver-name="+strings.Repeat("a", 64)), "--driver-name"},
		"empty driver name": {append(good, "--driver-name="), "--driver-name"},
		"file system":       {append(good, "--default-fs-type=ntfs"), "ext4"},
		"log format":        {append(good, "--logging-format=xml"), "json"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(t, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("want %q, got %v", test.problem, err)
			}
		})
	}
	if c, _ := parse(t, good...); c.Validate() != nil {
		t.Error(c.Validate())
	}
}

func TestANodeNeedsNoCloudConfig(t *testing.T) {
	c, err := parse(t, "--endpoint=unix:///x", "--provide-controller-service=false")
	if err != nil || c.Validate() != nil {
		t.Error(err, c.Validate())
	}
}

func TestEveryFlagIsDescribedAndSetsItsOwnField(t *testing.T) {
	var c Config
	fs := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	c.Bind(fs)
	fields := map[uintptr]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s says nothing about itself", f.Name)
		}
		if v := reflect.ValueOf(f.Value); v.Elem().Kind() != reflect.Struct {
			if other, taken := fields[v.Pointer()]; taken {
				t.Errorf("--%s and --%s set the same field", f.Name, other)
			}
			fields[v.Pointer()] = f.Name
		}
	})
	if len(fields) < 20 {
		t.Errorf("only %d fields were looked at", len(fields))
	}
}

// The arguments of a container have these flags always, and the variable of one that is not set is empty.
func TestAFlagOfAListMayBeEmpty(t *testing.T) {
	c, err := parse(t, "--volume-metadata=", "--server-metadata=role=node,pool=a", "--volume-metadata=team=storage")
	if err != nil || len(c.VolumeMetadata) != 1 || c.VolumeMetadata["team"] != "storage" || c.ServerMetadata["role"] != "node" || c.ServerMetadata["pool"] != "a" {
		t.Errorf("%v, %v: %v", c.VolumeMetadata, c.ServerMetadata, err)
	}
	if c, err := parse(t, "--user-agent=", "--user-agent=prod, west"); err != nil || !slices.Equal(c.UserAgent, []string{"prod, west"}) {
		t.Errorf("%q: %v", c.UserAgent, err)
	}
	for arg, want := range map[string]string{"--volume-metadata=type=x": "only the driver itself writes the key", "--protect-other-clusters": "needs --cluster"} {
		c, err := parse(t, "--endpoint=unix:///x", "--cloud-config=x", arg)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestAnEndpointThatTheNetworkReachesIsInsecureAndRefusedWhenStrict(t *testing.T) {
	for endpoint, exposed := range map[string]bool{
		"unix:///x": false, "tcp://127.0.0.1:1": false, "tcp://[::1]:1": false, "tcp://localhost:1": false,
		"tcp://0.0.0.0:1": true, "tcp://:1": true, "TCP://10.0.0.1:1": true, "tcp://db.example:1": true, "tcp://[::]:1": true,
	} {
		c, err := parse(t, "--endpoint="+endpoint, "--cloud-config=x", "--provide-node-service=false")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Exposed() != ""; got != exposed {
			t.Errorf("%s: want exposed %t, got %q", endpoint, exposed, c.Exposed())
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
		c.Strict = true
		if err := c.Validate(); (err != nil) != exposed {
			t.Errorf("%s with --strict: %v", endpoint, err)
		}
	}
}

func TestLogLevels(t *testing.T) {
	for v, want := range map[int]slog.Level{0: slog.LevelInfo, 2: slog.LevelInfo, 4: slog.LevelDebug, 5: slog.LevelDebug - 1, 9: slog.LevelDebug - 1} {
		if got := (&Config{Verbosity: v}).LogLevel(); got != want {
			t.Errorf("-v=%d: want %v, got %v", v, want, got)
		}
	}
}

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		conf       string
		want       Settings
		complaints []string // a part of each
		problem    string
	}{
		"empty": {},
		"everything": {
			conf: "[Global]\nauth-url=x\n[BlockStorage]\nnode-volume-attach-limit=20\nignore-volume-az=yes\nrescan-on-resize\n[Metadata]\nsearch-order=metadataService, configDrive\n",
			want: Settings{AttachLimit: 20, IgnoreZone: true, SearchOrder: []string{"metadataService", "configDrive"}},
		},
		"names in other case":          {conf: "[blockstorage]\nIgnore-Volume-AZ=true\n", want: Settings{IgnoreZone: true}},
		"the cloud controller's":       {conf: "[LoadBalancer]\nuse-octavia=true\n[LoadBalancerClass \"x\"]\nany=thing\n[Networking]\n[Route]\nrouter-id=x\n"},
		"a negative limit":             {conf: "[BlockStorage]\nnode-volume-attach-limit=-1\n", want: Settings{AttachLimit: 256}},
		"a limit too high":             {conf: "[BlockStorage]\nnode-volume-attach-limit=257\n", want: Settings{AttachLimit: 256}},
		"a limit that is none":         {conf: "[BlockStorage]\nnode-volume-attach-limit=many\n", problem: "many"},
		"a reserve of none":            {conf: "[BlockStorage]\nnode-volume-attach-reserve=0\n", want: Settings{AttachReserve: new(int64)}},
		"a reserve that is none":       {conf: "[BlockStorage]\nnode-volume-attach-reserve=-1\n", problem: "from 0 to 256"},
		"volumes of others":            {conf: "[BlockStorage]\nnode-foreign-volumes = a, b,c\n", want: Settings{ForeignVolumes: []string{"a", "b", "c"}}},
		"a boolean that is none":       {conf: "[BlockStorage]\nignore-volume-az=maybe\n", problem: "ignore-volume-az"},
		"an unknown key":               {conf: "[BlockStorage]\nignore-volume-as=true\n", complaints: []string{"line 2: unknown key ignore-volume-as in section [BlockStorage]; did you mean ignore-volume-az?"}},
		"an unknown key of [Global]":   {conf: "[Global]\nauth-ulr=x\n", complaints: []string{"did you mean auth-url?"}},
		"an unknown section":           {conf: "[BlockStorge]\na=b\n", complaints: []string{"did you mean BlockStorage?"}},
		"zones":                        {conf: "[Zone \"az 1\"]\nvolume-zone = cinder 1\n[zone \"az2\"]\nVolume-Zone=\"cinder#2\"\n", want: Settings{ZoneMap: contract.ZoneMap{"az 1": "cinder 1", "az2": "cinder#2"}}},
		"a zone of no name":            {conf: "[Zone]\nvolume-zone=x\n", problem: "names no compute zone"},
		"a zone without a volume zone": {conf: "[Zone \"az1\"]\n", problem: "has no volume-zone"},
		"a zone with an empty one":     {conf: "[Zone \"az1\"]\nvolume-zone=\n", problem: "no volume zone"},
		"zones of one label":           {conf: "[Zone \"az 1\"]\nvolume-zone=a\n[Zone \"az-1\"]\nvolume-zone=b\n", problem: "different volume zones"},
		"an unknown key of a zone":     {conf: "[Zone \"az1\"]\nvolume-zone=a\nvolumezone=b\n", want: Settings{ZoneMap: contract.ZoneMap{"az1": "a"}}, complaints: []string{"did you mean volume-zone?"}},
		"a place nobody knows":         {conf: "[Metadata]\nsearch-order=configDrive,ec2\n", want: Settings{SearchOrder: []string{"configDrive"}}, complaints: []string{`"ec2"`}},
		"the hardware's UUID first":    {conf: "[Metadata]\nsearch-order=dmi, configDrive\n", want: Settings{SearchOrder: []string{"dmi", "configDrive"}}},
		"only places nobody knows":     {conf: "[Metadata]\nsearch-order=ec2\n", problem: "none of"},
		"old keys of the plugin":       {conf: "[BlockStorage]\nbs-version=v3\ntrust-device-path=false\n"},
		"another cloud's own [Global]": {conf: "[Global \"east\"]\nauth-url=x\npassword=\"p#w\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := cloudconf.Parse([]byte(test.conf))
			if err != nil {
				t.Fatal(err)
			}
			got, complaints, err := ParseSettings(file)
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("-want +got\n", diff)
			}
			if len(complaints) != len(test.complaints) {
				t.Fatalf("want %q, got %q", test.complaints, complaints)
			}
			for i := range complaints {
				if !strings.Contains(complaints[i], test.complaints[i]) {
					t.Errorf("want %q, got %q", test.complaints[i], complaints[i])
				}
			}
		})
	}
}

func TestLaterFilesWinKeyByKey(t *testing.T) {
	files := map[string]string{"a": "[BlockStorage]\nnode-volume-attach-limit=20\nignore-volume-az=true\n", "b": "[BlockStorage]\nnode-volume-attach-limit=30\n", "bad": "[x\n"}
	read := func(path string) ([]byte, error) {
		content, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(content), nil
	}
	file, err := ReadFiles(read, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ParseSettings(file)
	if want := (Settings{AttachLimit: 30, IgnoreZone: true}); err != nil || !cmp.Equal(want, got) {
		t.Errorf("want %v, got %v, %v", want, got, err)
	}
	if _, err := ReadFiles(read, "a", "bad"); err == nil || !strings.Contains(err.Error(), "bad: line 1") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadFiles(read, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultsOfOurOwn(t *testing.T) {
	c, err := parse(t)
	if err != nil || c.DriverName != "cinder.csi.openstack.org" || c.TopologyKey() != "topology.cinder.csi.openstack.org/zone" || c.Strict || c.DefaultFSType != "ext4" || c.DrainTimeout != 20*time.Second {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestWhatNeedsARestartIsListedOnce(t *testing.T) {
	got := Settings{AttachReserve: new(int64), ForeignVolumes: []string{"v"}}.NeedRestart(Settings{})
	if diff := cmp.Diff([]string{AttachReserve, ForeignVolumes}, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func FuzzParseSettings(f *testing.F) {
	for _, seed := range []string{"", "[BlockStorage]\nnode-volume-attach-limit=0x10\n", "[Metadata]\nsearch-order=,\n", "[Global \"a\"]\nx=\"y\\\"z\"\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, conf string) {
		file, err := cloudconf.Parse([]byte(conf))
		if err != nil {
			return
		}
		s, _, err := ParseSettings(file)
		if err == nil && (s.AttachLimit < 0 || s.AttachLimit > 256 || len(s.SearchOrder) == 0 && s.SearchOrder != nil) {
			t.Errorf("%q gives %+v", conf, s)
		}
	})
}

func TestFurtherFlagsComeFromTheEnvironmentOneALine(t *testing.T) {
	got, err := parse(t, ExtraArgs("--user-agent=a b\n\n  --strict=true  \n")...)
	if err != nil || !cmp.Equal([]string{"a b"}, got.UserAgent) || !got.Strict {
		t.Errorf("want both flags of the variable, got %+v, %v", got, err)
	}
	if got := ExtraArgs(""); len(got) != 0 {
		t.Errorf("want no flag from an empty variable, got %q", got)
	}
	if got, err := parse(t, append([]string{"--default-fs-type=ext4"}, ExtraArgs("--default-fs-type=xfs")...)...); err != nil || got.DefaultFSType != "xfs" {
		t.Errorf("want the variable to win, got %q, %v", got.DefaultFSType, err)
	}
}
