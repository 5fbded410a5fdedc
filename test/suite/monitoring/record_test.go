//go:build monitoring

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// pod is one driver, as Prometheus sees it.
type pod struct {
	name, namespace string
	conf            string // path of its cloud.conf
	driver          *inprocess.Driver
	client          http.Client
	state           state
}

// state is what Prometheus finds of a pod.
type state int

const (
	serving  state = iota
	refusing       // the pod is there and does not answer
	gone
)

// stage is one scenario: a cloud, a controller and two nodes, and the series that Prometheus would have recorded.
type stage struct {
	t           *testing.T
	ctx         context.Context
	sim         *openstacksim.Sim
	admin       *inprocess.Admin
	machine     *testenv.Machine // of the nodes
	controller  *pod
	nodes       []*pod
	down        map[string]bool   // "pod endpoint": the container does not answer
	leases      map[string]int    // the minute from which on nobody renews a lease
	unreachable atomic.Bool       // the cloud
	override    map[string]string // values of series that no scenario can make really
	begun       time.Time
	minutes     int
	series      map[string][]string
}

func newStage(t *testing.T) *stage {
	config := openstacksim.Default()
	config.Projects[1].Quota = map[string]int{"volumes": 1000}
	s := &stage{
		t: t, ctx: t.Context(), sim: openstacksim.New(config), machine: testenv.NewMachine(t), begun: time.Now(), series: map[string][]string{},
		down: map[string]bool{}, leases: map[string]int{}, override: map[string]string{},
	}
	s.admin = inprocess.NewAdmin(t, s.sim)
	for _, dir := range []string{"proc/self", "sys/block"} {
		testenv.Must(t, os.MkdirAll(s.machine.Path(dir), 0o755))
	}
	testfile.Write(t, s.machine.Path("proc/self/mountinfo"), "", 0o600)
	s.controller = s.launch("cinder-csi", "cinder-csi-controller-0", string(s.sim.CloudConf(inprocess.URL)), "--provide-node-service=false", "--with-capacity")
	for i := range 2 {
		s.nodes = append(s.nodes, s.launchNode(i))
	}
	for _, node := range s.nodes {
		s.register(node)
	}
	return s
}

// register calls the driver of a node as kubelet does.
func (s *stage) register(node *pod) {
	s.t.Helper()
	if _, err := csi.NewNodeClient(node.driver).NodeGetInfo(s.ctx, &csi.NodeGetInfoRequest{}); err != nil {
		s.t.Fatal(err)
	}
}

// wire is the way to the cloud.
func (s *stage) wire() http.RoundTripper {
	next := memnet.Transport(s.sim.Handler())
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if s.unreachable.Load() {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *stage) launchNode(number int) *pod {
	s.t.Helper()
	return s.launch("cinder-csi-node", fmt.Sprintf("cinder-csi-node-%d", number), "[BlockStorage]\nnode-volume-attach-limit = 2\n",
		"--provide-controller-service=false", "--sys-root="+s.machine.Sys, "--dev-root="+s.machine.Dev, "--proc-root="+s.machine.Path("proc"))
}

func (s *stage) launch(namespace, name, conf string, args ...string) *pod {
	s.t.Helper()
	p := &pod{namespace: namespace, name: name, conf: filepath.Join(s.t.TempDir(), "cloud.conf")}
	p.write(s.t, conf)
	ctx, stop := context.WithCancel(s.ctx)
	web := memnet.Listen()
	d, ended, err := inprocess.Launch(ctx, inprocess.Options{CloudConf: p.conf, Transport: s.wire(), Web: web, Args: args})
	if err != nil {
		stop()
		s.t.Fatal(err)
	}
	p.driver, p.client.Transport = d, &http.Transport{DialContext: web.DialContext, DisableKeepAlives: true}
	s.t.Cleanup(func() {
		stop()
		_ = d.Close()
		if err := <-ended; err != nil {
			s.t.Errorf("the driver of %s ended with %v", name, err)
		}
	})
	return p
}

func (p *pod) write(t *testing.T, conf string) {
	t.Helper()
	testfile.Write(t, p.conf, conf, 0o600)
}

// pass lets minutes pass, with a scrape in each.
func (s *stage) pass(minutes int) {
	s.t.Helper()
	for range minutes {
		for _, p := range append([]*pod{s.controller}, s.nodes...) {
			s.scrape(p)
		}
		s.scrapeOthers()
		s.minutes++
		time.Sleep(time.Minute)
	}
}

func (s *stage) scrape(p *pod) {
	s.t.Helper()
	labels := fmt.Sprintf(`cluster="east",namespace=%q,pod=%q,instance=%q,endpoint="driver"`, p.namespace, p.name, p.name+":8080")
	if p.state == gone {
		return
	}
	if p.state == refusing {
		s.record("up{"+labels+"}", "0")
		return
	}
	s.record("up{"+labels+"}", "1")
	response, err := p.client.Get("http://driver/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := strings.LastIndex(line, "}"); at >= 0 {
			series, value = line[:at+1], strings.TrimSpace(line[at+1:])
		}
		if strings.HasPrefix(series, "#") || strings.HasPrefix(series, "go_") || strings.Contains(series, "_bucket{") || series == "" {
			continue
		}
		name, own, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if strings.HasSuffix(name, "_timestamp_seconds") { // promtool's clock begins at 0
			if at, err := strconv.ParseFloat(value, 64); err == nil {
				value = strconv.FormatFloat(at-float64(s.begun.Unix()), 'f', -1, 64)
			}
		}
		all := slices.DeleteFunc([]string{labels, own}, func(l string) bool { return l == "" })
		if forced := s.override[p.name+" "+name]; forced != "" {
			value = forced
		}
		s.record(name+"{"+strings.Join(all, ",")+"}", value)
	}
}

// sidecars are the ports of the controller that the monitors name, beside the driver.
var sidecars = []string{"provisioner", "attacher", "resizer"}

// leases of those sidecars, as csi-lib-utils names them.
var leases = []string{"cinder-csi-openstack-org", "external-attacher-leader-cinder-csi-openstack-org", "external-resizer-cinder-csi-openstack-org"}

// scrapeOthers notes what Prometheus has of other programs: the sidecars, the second controller, and two replicas of kube-state-metrics. Those
// also have the leases of a driver that was replaced.
func (s *stage) scrapeOthers() {
	if s.controller.state != serving {
		return
	}
	for _, pod := range []string{"cinder-csi-controller-0", "cinder-csi-controller-1"} {
		for _, endpoint := range append([]string{"driver"}, sidecars...) {
			if pod == s.controller.name && endpoint == "driver" {
				continue // scrape has it
			}
			value := "1"
			if s.down[pod+" "+endpoint] {
				value = "0"
			}
			s.record(fmt.Sprintf(`up{cluster="east",namespace="cinder-csi",pod=%q,instance="%s:%s",endpoint=%q}`, pod, pod, endpoint, endpoint), value)
		}
	}
	for _, replica := range []string{"a", "b"} {
		for _, lease := range leases {
			renewed := s.minutes * 60
			if since, ended := s.leases[lease]; ended {
				renewed = since * 60
			}
			s.record(fmt.Sprintf(`kube_lease_renew_time{cluster="east",namespace="cinder-csi",instance=%q,lease=%q}`, replica, lease), strconv.Itoa(renewed))
			s.record(fmt.Sprintf(`kube_lease_renew_time{cluster="east",namespace="kube-system",instance=%q,lease=%q}`, replica, lease), "1")
		}
	}
}

// record notes one sample. Samples that are missing are underscores, as promtool reads them.
func (s *stage) record(series, value string) {
	for len(s.series[series]) < s.minutes {
		s.series[series] = append(s.series[series], "_")
	}
	s.series[series] = append(s.series[series], value)
}

// eventually repeats a call as a sidecar does, until it succeeds.
func (s *stage) eventually(call func(ctx context.Context) error) {
	go func() {
		for pause := time.Second; s.ctx.Err() == nil; pause = min(2*pause, 5*time.Minute) {
			ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute)
			err := call(ctx)
			cancel()
			if err == nil {
				return
			}
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}()
}

func (s *stage) rpc() csi.ControllerClient { return csi.NewControllerClient(s.controller.driver) }

func (s *stage) create(ctx context.Context, name string) (string, error) {
	made, err := s.rpc().CreateVolume(ctx, csitest.Claim(name))
	return made.GetVolume().GetVolumeId(), err
}

// volume creates a volume, which must work.
func (s *stage) volume(name string) string {
	s.t.Helper()
	id, err := s.create(s.ctx, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *stage) attach(ctx context.Context, id string) error {
	_, err := s.rpc().ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: openstacksim.Default().Servers[0].ID, VolumeCapability: csitest.Mounted(""),
	})
	return err
}

func (s *stage) detach(ctx context.Context, id string) error {
	_, err := s.rpc().ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: openstacksim.Default().Servers[0].ID})
	return err
}

func (s *stage) delete(ctx context.Context, id string) error {
	_, err := s.rpc().DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}
