package histories

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// process is one life of a replica of the driver.
type process struct {
	*inprocess.Driver
	csi.ControllerClient
	world   *world
	replica int
	number  int // over all replicas
	stop    context.CancelFunc
	ended   <-chan error
	changed chan struct{} // the configuration

	// killed is closed when the process is killed. After that it reaches neither the cloud nor its callers.
	killed  chan struct{}
	killing sync.Once
	// draining says that the process got SIGTERM. It may end calls early, and completes requests to Nova.
	draining atomic.Bool
}

var errKilled = errors.New("the process was killed")

// start begins a new life of a replica.
func (w *world) start(replica int) *process {
	w.processes++
	p := &process{world: w, replica: replica, number: w.processes, changed: make(chan struct{}, 1), killed: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	var err error
	p.Driver, p.ended, err = inprocess.Launch(ctx, inprocess.Options{
		CloudConf: w.conf, Transport: network{p}, Changed: p.changed, Rand: w.random, Args: []string{"--with-capacity"},
	})
	if err != nil {
		panic(err) // the flags are this test's own
	}
	p.ControllerClient = csi.NewControllerClient(p.Driver)
	w.note("process %d of replica %d starts", p.number, replica)
	return p
}

func (p *process) dead() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// kill ends the process as SIGKILL does. Its replica starts again after a time.
func (p *process) kill(away time.Duration) {
	p.killing.Do(func() {
		p.world.note("process %d of replica %d is killed", p.number, p.replica)
		p.world.processEnded(p, away)
		close(p.killed)
		p.stop()
		p.world.background.Go(func() { p.awaitEnd() })
	})
}

// terminate ends the process as SIGTERM does: it drains.
func (p *process) terminate(away time.Duration) {
	p.killing.Do(func() {
		p.draining.Store(true)
		p.world.note("process %d of replica %d gets SIGTERM", p.number, p.replica)
		p.world.processEnded(p, away)
		p.stop()
		p.world.background.Go(func() {
			err := <-p.ended
			p.world.note("process %d has ended", p.number)
			if err != nil {
				p.world.violate("a process ends without an error after SIGTERM", "process %d: %v", p.number, err)
			}
			close(p.killed)
			_ = p.Close()
		})
	})
}

// awaitEnd waits for the goroutines of a killed process.
func (p *process) awaitEnd() {
	_ = p.Close()
	<-p.ended
}

// call is one call of a sidecar to a process.
type call struct {
	rpc
	process      *process
	begun, ended time.Time // ended is zero while it is in progress
	answered     bool      // the sidecar got the driver's own answer
}

// rpc is the request of a sidecar, as far as the checks need it.
type rpc struct {
	do       operation
	name     string // of the volume or snapshot to create
	volume   string // IDs
	snapshot string
	server   string
}

func (r rpc) String() string {
	s := string(r.do)
	for _, part := range []string{r.name, r.volume, r.snapshot, r.server} {
		if part != "" {
			s += " " + part
		}
	}
	return s
}

// answer is what a sidecar got.
type answer[A any] struct {
	of  *call
	got A
	err error
}

// invoke sends one call to the current process of a replica.
func invoke[A any](w *world, replica int, r rpc, do func(context.Context, csi.ControllerClient) (A, error)) answer[A] {
	time.Sleep(w.offset(r.String()))
	c := &call{rpc: r, begun: time.Now()}
	p := w.at(replica)
	if p == nil {
		time.Sleep(10 * time.Millisecond)
		return answer[A]{of: c, err: status.Error(codes.Unavailable, "no process listens on the socket")}
	}
	c.process = p
	w.callBegins(p, c)
	w.note("%s -> process %d", w.plain(r.String()), p.number)
	deadline := time.Now().Add(w.history.Timeout)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	got := make(chan answer[A], 1)
	go func() {
		reply, err := do(ctx, p)
		got <- answer[A]{c, reply, err}
	}()
	var a answer[A]
	select {
	case a = <-got:
	case <-p.killed:
		a = answer[A]{of: c, err: status.Error(codes.Unavailable, "the connection to the driver broke")}
	}
	// Both sides of the connection have a timer for the deadline, and either may be first at that moment. If it is the server's, ctx has no error yet.
	own := !p.dead() && !p.draining.Load() && time.Now().Before(deadline)
	w.callEnds(p, c, own)
	w.note("%s <- process %d: %s", w.plain(r.String()), p.number, w.plain(outcome(a.err)))
	return a
}

func outcome(err error) string {
	if err == nil {
		return "OK"
	}
	s := status.Convert(err)
	return fmt.Sprintf("%s: %s", s.Code(), s.Message())
}
