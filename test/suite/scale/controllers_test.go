//go:build scale

package scale

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/manifests"
	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
)

// container is one container of the controller, as the bundle has it.
type container struct {
	Name string
	Args []string
}

// programs are the entry points of the images.
var programs = map[string]string{"provisioner": "csi-provisioner", "attacher": "csi-attacher", "resizer": "csi-resizer"}

// bundle reads the containers and the settings of the controller from the files that users apply.
func bundle(t *testing.T) (containers []container, settings map[string]string) {
	t.Helper()
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []container }
			}
		}
	}
	var config struct{ Data map[string]string }
	err := errors.Join(manifests.Read("Deployment", "cinder-csi-controller", &deployment), manifests.Read("ConfigMap", "cinder-csi-controller-settings", &config))
	if err != nil {
		t.Fatal(err)
	}
	attacher := sizeOfRun(t).Attacher
	config.Data["ATTACHER_API_QPS"], config.Data["ATTACHER_API_BURST"] = strconv.Itoa(attacher.QPS), strconv.Itoa(attacher.Burst)
	config.Data["ATTACHER_RECONCILE_SYNC"] = attacher.ReconcileSync
	return deployment.Spec.Template.Spec.Containers, config.Data
}

// sizeOfRun is the size that a user would name for this cluster, or that of the flag.
func sizeOfRun(t *testing.T) v1alpha1.ClusterSize {
	t.Helper()
	for _, s := range v1alpha1.ClusterSizes {
		if *size == s.Name || *size == "" && *volumes <= s.Volumes && *nodes <= s.Nodes {
			return s
		}
	}
	t.Fatalf("no size for %d volumes and %d nodes, or -size %q is none", *volumes, *nodes, *size)
	return v1alpha1.ClusterSize{}
}

// replica is a pod of the controller: the driver and its sidecars as processes. Like kubelet it starts a container again that ends.
type replica struct {
	name, dir, socket string
	t                 *testing.T
	http              map[string]string // address of each container
	mu                sync.Mutex
	running           map[string]*exec.Cmd
	ends              sync.WaitGroup // of the containers
	restarts          int
	stopped           bool
}

func startReplica(t *testing.T, name string, c *cluster, conf, repo string) *replica {
	t.Helper()
	socket, err := os.MkdirTemp("", "csi") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socket) })
	r := &replica{t: t, name: name, dir: c.dir, socket: socket + "/csi.sock", http: map[string]string{}, running: map[string]*exec.Cmd{}}
	r.start(c, conf, repo)
	t.Cleanup(r.kill)
	return r
}

// start starts every container, in the order of the bundle.
func (r *replica) start(c *cluster, conf, repo string) {
	r.t.Helper()
	r.mu.Lock()
	r.stopped = false
	r.mu.Unlock()
	containers, settings := bundle(r.t)
	if *plugin != "" {
		containers = upstream
	}
	for _, one := range containers {
		program, args := controlplane.Program(programs[one.Name]), []string{}
		if one.Name == "driver" {
			program = filepath.Join(repo, "bin/cinder-csi-driver")
			if *plugin != "" {
				program = *plugin
			}
		} else if programs[one.Name] == "" {
			continue // the liveness probe
		}
		r.http[one.Name] = "127.0.0.1:" + controlplane.FreePort(r.t, "127.0.0.1")
		for _, arg := range one.Args {
			args = append(args, r.argument(one.Name, arg, settings, c, conf))
		}
		for other := range strings.SplitSeq(*also, ",") {
			if arg, its := strings.CutPrefix(other, one.Name+"="); its {
				args = append(args, arg)
			}
		}
		r.run(one.Name, program, args)
		if one.Name == "driver" {
			waitFor(r.t, r.name+": driver", time.Minute, func() bool { return r.serves() })
		}
	}
}

// serves reports whether the driver answers.
func (r *replica) serves() bool {
	if *plugin != "" {
		_, err := os.Stat(r.socket)
		return err == nil
	}
	return ok("http://" + r.http["driver"] + "/startupz")
}

var variable = regexp.MustCompile(`\$\((\w+)\)`)

// argument is an argument of the bundle, with the paths and the addresses of this machine.
func (r *replica) argument(container, arg string, settings map[string]string, c *cluster, conf string) string {
	flag, _, _ := strings.Cut(arg, "=")
	for other := range strings.SplitSeq(*instead, ",") {
		if strings.HasPrefix(other, container+"="+flag+"=") {
			return strings.TrimPrefix(other, container+"=")
		}
	}
	switch flag {
	case "--kubeconfig":
		return flag + "=" + filepath.Join(c.dir, "controller.kubeconfig")
	case "--csi-address":
		return flag + "=" + r.socket
	case "--endpoint":
		return flag + "=unix://" + r.socket
	case "--http-endpoint":
		return flag + "=" + r.http[container]
	case "--cloud-config":
		return flag + "=" + conf
	}
	return variable.ReplaceAllStringFunc(arg, func(name string) string { return settings[name[2:len(name)-1]] })
}

// run runs a container until it is stopped. Each replica has a host name of its own: with one name for both, both would be leaders.
func (r *replica) run(name, program string, args []string) {
	r.t.Helper()
	log, err := os.OpenFile(filepath.Join(r.dir, r.name+"-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ends.Go(func() {
		defer log.Close()
		runtime.LockOSThread() // Pdeathsig is about the thread that starts the process
		for pause := time.Duration(0); ; pause = min(max(2*pause, 10*time.Second), 5*time.Minute) {
			cmd := exec.Command("sh", append([]string{"-c", `hostname "$0" && exec "$@"`, r.name, program}, args...)...)
			cmd.Env = []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "POD_NAMESPACE=cinder-csi", "NAMESPACE=cinder-csi", "POD_NAME=" + r.name}
			cmd.Stdout, cmd.Stderr = log, log
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
			if !r.begin(name, cmd) {
				return
			}
			_ = cmd.Wait()
			if !r.ended() {
				return
			}
			time.Sleep(pause)
		}
	})
}

// begin starts a container, unless the replica is stopped.
func (r *replica) begin(name string, cmd *exec.Cmd) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	if err := cmd.Start(); err != nil {
		r.t.Errorf("%s %s: %v", r.name, name, err)
		return false
	}
	r.running[name] = cmd
	return true
}

// ended counts the end of a container. It reports whether kubelet would start it again.
func (r *replica) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.restarts++
	}
	return !r.stopped
}

// kill kills every container at once, as the loss of a node does.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, cmd := range r.running {
		_ = cmd.Process.Kill()
	}
}

// stop ends every container as kubelet does: SIGTERM to all at once, and a kill after 30 seconds.
func (r *replica) stop() {
	r.mu.Lock()
	r.stopped = true
	for _, cmd := range r.running {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	r.mu.Unlock()
	late := time.AfterFunc(30*time.Second, r.kill)
	defer late.Stop()
	r.ends.Wait()
}

// pid is the process of a container, or 0.
func (r *replica) pid(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cmd := r.running[name]; cmd != nil && !r.stopped {
		return cmd.Process.Pid
	}
	return 0
}

func ok(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// leader is the replica whose sidecar holds the lease, or nil.
func leader(c *cluster, sidecar string, replicas []*replica) *replica {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ HolderIdentity string }
		}
	}
	if err := c.send(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/cinder-csi/leases", nil, &list); err != nil {
		return nil
	}
	for _, lease := range list.Items {
		for _, r := range replicas {
			if strings.Contains(lease.Metadata.Name, leaseNames[sidecar]) && strings.Contains(lease.Spec.HolderIdentity, r.name) {
				return r
			}
		}
	}
	return nil
}

// leaseNames are parts of the names of the leases.
var leaseNames = map[string]string{"attacher": "external-attacher-leader", "resizer": "external-resizer", "provisioner": "cinder-csi-openstack-org"}

func replicaName(n int) string { return fmt.Sprintf("controller-%d", n) }
