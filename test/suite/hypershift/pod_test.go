//go:build hypershift

package hypershift

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// podUser is the user of the controller, as OpenShift's constraint or HyperShift would choose one.
const podUser = 1001

// pod runs the containers of a Pod object as processes. Each has a root directory with its program and its volumes and nothing else, the
// user of the pod, and the network of the pod.
type pod struct {
	corev1.Pod
	*cluster
	root, netns, address string
	settings             map[string]map[string]string // ConfigMaps of envFrom

	mu       sync.Mutex
	restarts map[string]int
	stopped  bool
	running  map[string]*exec.Cmd
	done     sync.WaitGroup
}

// programs are the images' entry points. The liveness probe is the stand-in of test/bed/cluster.
var programs = map[string]string{
	"provisioner": "csi-provisioner", "attacher": "csi-attacher", "resizer": "csi-resizer", "snapshotter": "csi-snapshotter", "livenessprobe": "livenessprobe",
}

// startPod starts the containers: init containers that stay (sidecars of Kubernetes) first, each until its startup probe succeeds.
func startPod(t *testing.T, c *cluster, object corev1.Pod, number int) *pod {
	t.Helper()
	p := &pod{Pod: object, cluster: c, root: t.TempDir(), settings: map[string]map[string]string{}, restarts: map[string]int{}, running: map[string]*exec.Cmd{}}
	testenv.Must(t, os.Chmod(p.root, 0o755))
	for dir := filepath.Dir(p.root); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) { // t.TempDir's parents are the owner's alone
		_ = os.Chmod(dir, 0o755)
	}
	p.netns, p.address = podNamespace(t, number)
	p.sync(t)
	t.Cleanup(func() { p.stop(t) })
	for _, container := range p.Spec.InitContainers {
		p.run(t, container)
		eventually(t, time.Minute, "startup probe of "+container.Name, func() error { return p.probe(container) })
	}
	for _, container := range p.Spec.Containers {
		p.run(t, container)
	}
	return p
}

// probe is the HTTP probe of a container, from inside of the pod's network.
func (p *pod) probe(container corev1.Container) error {
	get := container.StartupProbe.HTTPGet
	port := get.Port.IntValue()
	for _, named := range container.Ports {
		if named.Name == get.Port.String() {
			port = int(named.ContainerPort)
		}
	}
	return httpOK(fmt.Sprintf("http://%s:%d%s", p.address, port, get.Path))
}

// sync brings the volumes up to date, as kubelet does about once a minute.
func (p *pod) sync(t *testing.T) {
	t.Helper()
	for _, v := range p.Spec.Volumes {
		dir := filepath.Join(p.root, "volumes", v.Name)
		switch {
		case v.EmptyDir != nil:
			testenv.Must(t, os.MkdirAll(dir, 0o777))
			testenv.Must(t, os.Chmod(dir, 0o777))
		case v.Secret != nil:
			p.project(t, dir, p.content(t, "secret", v.Secret.SecretName, v.Secret.Items, v.Secret.Optional))
		case v.ConfigMap != nil:
			p.project(t, dir, p.content(t, "configmap", v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional))
		case v.Projected != nil:
			files := map[string]string{}
			for _, source := range v.Projected.Sources {
				switch s, c := source.Secret, source.ConfigMap; {
				case s != nil:
					maps.Copy(files, p.content(t, "secret", s.Name, s.Items, s.Optional))
				case c != nil:
					maps.Copy(files, p.content(t, "configmap", c.Name, c.Items, c.Optional))
				default:
					t.Fatalf("volume %s: a controller in a hosted control plane needs no such source: %+v", v.Name, source)
				}
			}
			p.project(t, dir, files)
		default:
			t.Fatalf("volume %s: a controller in a hosted control plane needs no such volume: %+v", v.Name, v)
		}
	}
}

// content is what a Secret or ConfigMap puts into a volume, by file.
func (p *pod) content(t *testing.T, kind, name string, items []corev1.KeyToPath, optional *bool) map[string]string {
	t.Helper()
	mayLack := optional != nil && *optional
	var object struct{ Data map[string]string }
	if !mayLack || p.kubectl(t, "get", kind, name, "--namespace="+p.Namespace, "--ignore-not-found", "-o", "name") != "" {
		p.read(t, &object, kind, name)
	}
	files := map[string]string{}
	for key, value := range object.Data {
		if kind == "secret" {
			decoded := testenv.Value(base64.StdEncoding.DecodeString(value))(t)
			value = string(decoded)
		}
		if len(items) == 0 {
			files[key] = value
		}
		for _, item := range items {
			if item.Key == key {
				files[item.Path] = value
			}
		}
	}
	if len(items) > 0 && len(files) != len(items) && !mayLack {
		t.Fatalf("%s %s lacks a key that the pod mounts", kind, name)
	}
	return files
}

func (p *pod) read(t *testing.T, into any, kind, name string) {
	t.Helper()
	out := p.kubectl(t, "get", kind, name, "--namespace="+p.Namespace, "-o", "json")
	testenv.Must(t, json.Unmarshal([]byte(out), into))
}

// project replaces the files of a volume as kubelet does: a new directory, and the link ..data moved to it.
func (p *pod) project(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	old := map[string]string{}
	for name := range files {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			old[name] = string(text)
		}
	}
	if len(old) == len(files) && mapsEqual(old, files) {
		return
	}
	fresh := filepath.Join(dir, fmt.Sprintf("..%d", time.Now().UnixNano()))
	errs := []error{os.MkdirAll(fresh, 0o755)}
	for name, text := range files {
		path := filepath.Join(fresh, name)
		errs = append(errs, os.WriteFile(path, []byte(text), 0o440), os.Chown(path, 0, podUser)) // fsGroup
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		}
	}
	errs = append(errs, os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..new")), os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	testenv.Must(t, errors.Join(errs...))
}

func mapsEqual(a, b map[string]string) bool {
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}

var variable = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// environment is that of a container, as kubelet makes it.
func (p *pod) environment(t *testing.T, container corev1.Container) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, source := range container.EnvFrom {
		name := source.ConfigMapRef.Name
		if p.settings[name] == nil {
			var object struct{ Data map[string]string }
			p.read(t, &object, "configmap", name)
			p.settings[name] = object.Data
		}
		for key, value := range p.settings[name] {
			env[key] = value
		}
	}
	for _, e := range container.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			env[e.Name] = p.Name
		}
	}
	return env
}

// script makes the container's file system and runs its program there: bash -c script NAME ROOT HOST USER COMMAND... with the mounts on stdin.
const script = `
set -euo pipefail
mount --make-rprivate /
hostname "$2"
while read -r from to mode; do
	mkdir -p "$1$to"
	mount --bind "$from" "$1$to"
	[ "$mode" = rw ] || mount -o remount,bind,ro "$1$to"
done
root=$1 user=$3
shift 3
exec setpriv --no-new-privs chroot --userspec="$user:$user" --groups= "$root" "$@" </dev/null
`

// run starts a container and starts it again when it ends.
func (p *pod) run(t *testing.T, container corev1.Container) {
	t.Helper()
	root := filepath.Join(p.root, "containers", container.Name)
	program := filepath.Join(repo, "bin", "cinder-csi-driver")
	argv := slices.Clone(container.Command)
	if len(argv) == 0 {
		program, argv = controlplane.Program(programs[container.Name]), []string{"/" + programs[container.Name]}
	}
	copyProgram(t, program, filepath.Join(root, argv[0]))
	env := p.environment(t, container)
	for _, arg := range container.Args {
		argv = append(argv, variable.ReplaceAllStringFunc(arg, func(ref string) string {
			if value, known := env[ref[2:len(ref)-1]]; known {
				return value
			}
			return ref
		}))
	}
	var mounts strings.Builder
	for _, m := range container.VolumeMounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		fmt.Fprintf(&mounts, "%s %s %s\n", filepath.Join(p.root, "volumes", m.Name), m.MountPath, mode)
	}
	log := testenv.Value(os.Create(p.log(container.Name)))(t)
	begin := func() *exec.Cmd {
		args := []string{"netns", "exec", p.netns, "unshare", "--mount", "--uts", "bash", "-c", script, "container", root, p.Name, fmt.Sprint(podUser)}
		cmd := exec.Command("ip", append(args, argv...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = strings.NewReader(mounts.String()), log, log, "/"
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
		for key, value := range env {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		return cmd
	}
	p.done.Go(func() {
		defer log.Close()
		for {
			cmd := begin()
			p.mu.Lock()
			if p.stopped {
				p.mu.Unlock()
				return
			}
			err := cmd.Start()
			p.running[container.Name] = cmd
			p.mu.Unlock()
			if err == nil {
				_ = cmd.Wait()
			}
			p.mu.Lock()
			if !p.stopped {
				p.restarts[container.Name]++
			}
			p.mu.Unlock()
			time.Sleep(time.Second)
		}
	})
}

func (p *pod) log(container string) string { return filepath.Join(p.root, container+".log") }

// copyProgram makes a program part of a container's root directory.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	testenv.Must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	if out, err := exec.Command("cp", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// stop ends all containers with SIGTERM.
func (p *pod) stop(t *testing.T) {
	p.mu.Lock()
	p.stopped = true
	for _, cmd := range p.running {
		if cmd.Process != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() { p.done.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Errorf("pod %s: containers do not end within 30 s of SIGTERM", p.Name)
		p.mu.Lock()
		for _, cmd := range p.running {
			_ = cmd.Process.Kill()
		}
		p.mu.Unlock()
		<-ended
	}
}

// restarted are the containers that ended by themselves.
func (p *pod) restarted() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]int{}
	for name, n := range p.restarts {
		all[name] = n
	}
	return all
}

// diagnose prints the end of every log.
func (p *pod) diagnose(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		text, _ := os.ReadFile(p.log(c.Name))
		lines := strings.Split(string(text), "\n")
		t.Logf("%s %s:\n%s", p.Name, c.Name, strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}
