// Package controlplane runs etcd, the API server and the controllers of Kubernetes as processes, for suites without nodes. The programs are
// those that test/bed/cluster builds once and keeps.
package controlplane

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Options describe a control plane.
type Options struct {
	Dir  string // of its data, keys and logs
	Host string // the address that its programs listen on
	// Admin is the name of the user with the token "admin", who is in group system:masters.
	Admin string
	// ServiceRange holds the cluster IPs.
	ServiceRange string
	Args         []string // further flags of kube-apiserver
}

// Server is a control plane.
type Server struct {
	dir, host string
	Port      string // of the API server

	mu      sync.Mutex
	running map[string]*process
}

// process is a program that runs until the test ends, with the arguments of its next start.
type process struct {
	args []string
	cmd  *exec.Cmd
	log  *os.File
}

// Start starts etcd and the API server, which run until the test ends. The API server is not ready yet. Without other flags it writes its own
// certificate to apiserver.crt below Dir.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{dir: o.Dir, host: o.Host, Port: FreePort(t, o.Host), running: map[string]*process{}}
	etcd, peer := net.JoinHostPort(o.Host, FreePort(t, o.Host)), net.JoinHostPort(o.Host, FreePort(t, o.Host))
	s.Run(t, "etcd", "--data-dir="+s.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://"+peer)
	s.write(t, "tokens.csv", "admin,"+o.Admin+","+o.Admin+",system:masters\n")
	s.write(t, "accounts.key", privateKey(t))
	s.Run(t, "kube-apiserver", append([]string{
		"--etcd-servers=http://" + etcd, "--bind-address=" + o.Host, "--secure-port=" + s.Port, "--cert-dir=" + o.Dir,
		"--token-auth-file=" + s.path("tokens.csv"), "--authorization-mode=RBAC", "--allow-privileged", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + o.ServiceRange, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.path("accounts.key"), "--service-account-signing-key-file=" + s.path("accounts.key"),
	}, o.Args...)...)
	return s
}

// Controllers starts the named controllers, which run until the test ends. ca is the file with the certificate authority of the API server.
func (s *Server) Controllers(t testing.TB, kubeconfig, names, ca string, args ...string) {
	t.Helper()
	s.Run(t, "kube-controller-manager", append([]string{
		"--kubeconfig=" + kubeconfig, "--controllers=" + names, "--leader-elect=false", "--secure-port=0", "--root-ca-file=" + ca,
		"--service-account-private-key-file=" + s.path("accounts.key"),
	}, args...)...)
}

// Run runs a program of the cluster bed until the test ends.
func (s *Server) Run(t testing.TB, name string, args ...string) {
	t.Helper()
	log, err := os.Create(s.log(name))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{args: args, log: log}
	s.start(t, name, p)
	s.mu.Lock()
	s.running[name] = p
	s.mu.Unlock()
	t.Cleanup(func() {
		p.kill()
		_ = log.Close()
	})
}

// Restart kills a program as a crash would, waits for a while, and starts it again with the same arguments.
func (s *Server) Restart(t testing.TB, name string, pause time.Duration) {
	t.Helper()
	s.mu.Lock()
	p := s.running[name]
	s.mu.Unlock()
	p.kill()
	time.Sleep(pause)
	s.start(t, name, p)
}

// PID is the process of a program.
func (s *Server) PID(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name].cmd.Process.Pid
}

func (s *Server) start(t testing.TB, name string, p *process) {
	t.Helper()
	cmd := exec.Command(Program(name), p.args...)
	// csi-provisioner prefers the variable KUBECONFIG to its flag; here nothing may inherit one.
	cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; test/bed/cluster/build.sh builds it", name, err)
	}
	s.mu.Lock()
	p.cmd = cmd
	s.mu.Unlock()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// LogTail is the end of what a program has written.
func (s *Server) LogTail(name string) string {
	log, _ := os.ReadFile(s.log(name))
	return string(log[max(0, len(log)-2000):])
}

// Program is the path of a program of the cluster bed. KUBE_APISERVER names the API server of another version.
func Program(name string) string {
	if other := os.Getenv("KUBE_APISERVER"); other != "" && name == "kube-apiserver" {
		return other
	}
	dir := os.Getenv("CLUSTER_CACHE")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache", "cluster-bed")
	}
	return filepath.Join(dir, "bin", name)
}

// FreePort is a port of an address that no process listens on now.
func FreePort(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) log(program string) string { return s.path(program + ".log") }

func (s *Server) write(t testing.TB, name, text string) {
	t.Helper()
	testfile.Write(t, s.path(name), text, 0o600)
}

func privateKey(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
