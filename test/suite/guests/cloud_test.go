//go:build openstack

package guests

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// region is the cloud and the controller role of the driver.
type region struct {
	bed                                                  string
	nova, cinder, glance, keystone, adminNova, adminDisk *gophercloud.ServiceClient
	csi.ControllerClient
}

// patience limits waits for a guest on a machine with busy cores.
const patience = 15 * time.Minute

// newRegion starts the controller until the test ends.
func newRegion(t *testing.T) *region {
	t.Helper()
	r := newCloud(t)
	r.ControllerClient = startController(t, filepath.Join(r.bed, "cloud.conf"))
	return r
}

func newCloud(t *testing.T) *region {
	t.Helper()
	r := &region{bed: bedWithGuests(t)}
	member, admin := r.connect(t, "lab-demo"), r.connect(t, "lab-admin")
	r.nova, r.cinder, r.glance = service(t, member, "compute", "2.87"), service(t, member, "block-storage", "3.62"), service(t, member, "image", "")
	r.keystone = service(t, member, "identity", "")
	r.adminNova, r.adminDisk = service(t, admin, "compute", "2.87"), service(t, admin, "block-storage", "3.62")
	return r
}

// startController starts the controller role with the credential of a cloud.conf until the test ends.
func startController(t *testing.T, conf string) csi.ControllerClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	return csi.NewControllerClient(startControllerAt(t, socket, "--cloud-config="+conf, "--cluster=guests"))
}

func startControllerAt(t *testing.T, socket string, flags ...string) *grpc.ClientConn {
	t.Helper()
	path := socket + ".log"
	log, err := os.Create(path)
	must(t, "make the log", err)
	defer log.Close()
	program, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "cinder-csi-driver"))
	must(t, "find the driver", err)
	cmd := exec.Command(program, append(flags, "--endpoint=unix://"+socket, "--provide-node-service=false", "--logging-format=json", "--v=4")...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // the controller ends when the test is killed
	must(t, "start the controller; make build", cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("want exit 0 of the controller after SIGTERM, got %v", err)
		}
		if text, _ := os.ReadFile(path); t.Failed() {
			t.Logf("the controller's log:\n%s", text)
		}
	})
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, "connect to the controller", err)
	t.Cleanup(func() { conn.Close() })
	_, err = csi.NewIdentityClient(conn).Probe(within(t, time.Minute), &csi.ProbeRequest{}, grpc.WaitForReady(true))
	must(t, "start the controller", err)
	return conn
}

// bedWithGuests is the directory of the running cloud.
func bedWithGuests(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OPENSTACK_BED")
	text, err := os.ReadFile(filepath.Join(dir, "bed.json"))
	if err != nil {
		t.Fatalf("no cloud in OPENSTACK_BED; make cloud-up CLOUD=epoxy BACKEND=ceph COMPUTE=libvirt starts one: %v", err)
	}
	var settings struct{ Compute string }
	must(t, "read bed.json", json.Unmarshal(text, &settings))
	if settings.Compute != "libvirt" {
		t.Fatalf("the servers of the cloud in %s are no guests (COMPUTE=%s)", dir, settings.Compute)
	}
	return dir
}

func (r *region) connect(t *testing.T, name string) *cloud.Cloud {
	t.Helper()
	settings, err := cloud.FromSource(cloud.Source{CloudName: name, CloudsFile: filepath.Join(r.bed, "clouds.yaml"), Env: func(string) string { return "" }})
	must(t, "read clouds.yaml", err)
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{})
	must(t, "log in", err)
	t.Cleanup(c.Close)
	return c
}

func service(t *testing.T, c *cloud.Cloud, kind, microversion string) *gophercloud.ServiceClient {
	t.Helper()
	client, err := c.Client(kind, microversion)
	must(t, "find the endpoint of "+kind, err)
	return client
}

// within is the context of one call, also after the test's own context has ended.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), d)
	t.Cleanup(cancel)
	return ctx
}

func ask(t *testing.T, c *gophercloud.ServiceClient, method, path string, body, answer any) error {
	t.Helper()
	options := &gophercloud.RequestOpts{JSONBody: body, OkCodes: []int{200, 201, 202, 204}}
	if answer != nil {
		options.JSONResponse = answer
	}
	resp, err := c.Request(within(t, time.Minute), method, c.ServiceURL(path), options)
	if err == nil && answer == nil {
		err = resp.Body.Close()
	}
	return err
}

func send(t *testing.T, c *gophercloud.ServiceClient, method, path string, body, answer any) {
	t.Helper()
	must(t, method+" "+path, ask(t, c, method, path, body, answer))
}

// server is what Nova says about a server.
type server struct {
	ID, Name, Status string
	Task             *string               `json:"OS-EXT-STS:task_state"`
	Fault            json.RawMessage       `json:"fault"`
	Volumes          []struct{ ID string } `json:"os-extended-volumes:volumes_attached"`
}

func (r *region) server(t *testing.T, id string) (server, error) {
	t.Helper()
	var answer struct{ Server server }
	err := ask(t, r.nova, http.MethodGet, "servers/"+id, nil, &answer)
	return answer.Server, err
}

func (r *region) serverNamed(t *testing.T, name string) string {
	t.Helper()
	var answer struct{ Servers []server }
	send(t, r.nova, http.MethodGet, "servers?name=^"+name+"$", nil, &answer)
	if len(answer.Servers) != 1 {
		t.Fatalf("want one server %s, got %d", name, len(answer.Servers))
	}
	return answer.Servers[0].ID
}

// awaitServer waits for a status without a task under way.
func (r *region) awaitServer(t *testing.T, id, status string) {
	t.Helper()
	eventually(t, "server "+id+" is "+status, func() error {
		s, err := r.server(t, id)
		if err == nil && s.Status == "ERROR" && status != "ERROR" {
			t.Fatalf("server %s: %s", s.Name, s.Fault)
		}
		if err == nil && (s.Status != status || s.Task != nil) {
			err = fmt.Errorf("it is %s", s.Status)
		}
		return err
	})
}

// act makes an action of a server and waits for the status after it. It returns how long that took.
func (r *region) act(t *testing.T, id string, action map[string]any, status string) time.Duration {
	t.Helper()
	began := time.Now()
	send(t, r.nova, http.MethodPost, "servers/"+id+"/action", action, nil)
	r.awaitServer(t, id, status)
	return time.Since(began)
}

// boot starts a server until the test ends.
func (r *region) boot(t *testing.T, image string, more map[string]any) string {
	t.Helper()
	body := map[string]any{"name": "guest-" + rand.Text()[:8], "imageRef": image, "flavorRef": r.flavor(t), "networks": "none", "availability_zone": "az1"}
	for key, value := range more {
		body[key] = value
	}
	var answer struct{ Server server }
	send(t, r.nova, http.MethodPost, "servers", map[string]any{"server": body}, &answer)
	id := answer.Server.ID
	t.Cleanup(func() { r.deleteServer(t, id) })
	r.awaitServer(t, id, "ACTIVE")
	return id
}

func (r *region) deleteServer(t *testing.T, id string) {
	t.Helper()
	if _, err := r.server(t, id); gone(err) {
		return
	}
	send(t, r.nova, http.MethodDelete, "servers/"+id, nil, nil)
	eventually(t, "server "+id+" is gone", func() error {
		if _, err := r.server(t, id); !gone(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

func gone(err error) bool { return gophercloud.ResponseCodeIs(err, http.StatusNotFound) }

func (r *region) flavor(t *testing.T) string {
	t.Helper()
	var answer struct{ Flavors []struct{ ID, Name string } }
	send(t, r.nova, http.MethodGet, "flavors", nil, &answer)
	for _, f := range answer.Flavors {
		if f.Name == "lab.guest" {
			return f.ID
		}
	}
	t.Fatal("the cloud has no flavor lab.guest")
	return ""
}

// image is the image of the guests with other properties, until the test ends.
func (r *region) image(t *testing.T, properties map[string]string) string {
	t.Helper()
	var answer struct{ Images []map[string]any }
	send(t, r.glance, http.MethodGet, "v2/images?name=lab-node", nil, &answer)
	if len(answer.Images) != 1 {
		t.Fatalf("want one image lab-node, got %d", len(answer.Images))
	}
	body := map[string]any{"name": "guest-" + rand.Text()[:8], "disk_format": "raw", "container_format": "bare"}
	for _, name := range []string{"kernel_id", "ramdisk_id", "os_command_line", "hw_qemu_guest_agent"} {
		body[name] = answer.Images[0][name]
	}
	for name, value := range properties {
		body[name] = value
	}
	var made struct{ ID string }
	send(t, r.glance, http.MethodPost, "v2/images", body, &made)
	t.Cleanup(func() { send(t, r.glance, http.MethodDelete, "v2/images/"+made.ID, nil, nil) })
	disk, err := os.Open(filepath.Join(r.bed, "guest", "system.raw"))
	must(t, "open the disk of a guest", err)
	defer disk.Close()
	resp, err := r.glance.Request(within(t, time.Minute), http.MethodPut, r.glance.ServiceURL("v2", "images", made.ID, "file"), &gophercloud.RequestOpts{
		RawBody: disk, MoreHeaders: map[string]string{"Content-Type": "application/octet-stream"}, OkCodes: []int{204},
	})
	must(t, "upload the disk of a guest", err)
	resp.Body.Close()
	return made.ID
}

// volume is what Cinder says about a volume.
type volume struct {
	ID, Status  string
	Size        int
	Type        string `json:"volume_type"`
	Encrypted   bool
	Attachments []struct{ Device, AttachmentID string }
}

func (r *region) volume(t *testing.T, id string) (volume, error) {
	t.Helper()
	var answer struct{ Volume volume }
	err := ask(t, r.cinder, http.MethodGet, "volumes/"+id, nil, &answer)
	return answer.Volume, err
}

func (r *region) status(t *testing.T, id string) string {
	t.Helper()
	v, err := r.volume(t, id)
	if gone(err) {
		return "gone"
	}
	must(t, "read the volume", err)
	return v.Status
}

// eventually repeats a check until it succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	testenv.Eventually(t, patience, 300*time.Millisecond, what, check)
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		if refused := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &refused) {
			err = fmt.Errorf("%w: %s", err, refused.Body)
		}
		t.Fatalf("%s: %v", what, err)
	}
}
