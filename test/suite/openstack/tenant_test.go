//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// tenant is a separate project of the test, with its own servers. Other users of the bed do not appear in it. Every object that is left in
// it comes from the test.
type tenant struct {
	bed     string
	project string // id
	conf    string // path of a cloud.conf for its only user
	authURL string
	servers []server
	cinder  *gophercloud.ServiceClient
	nova    *gophercloud.ServiceClient
}

// server is a server of a tenant. The directory servers/by-name/NAME shows its disks.
type server struct{ id, name, zone string }

// zonesOfBed are the compute zones and volume zones of the bed.
var zonesOfBed = []string{"az1", "az2"}

// newTenant creates a project with a user and one server in each of the zones. The end of the test deletes all of it.
func newTenant(t *testing.T, bed string, zones ...string) *tenant {
	t.Helper()
	a := connect(t, cloud.Source{CloudName: "lab-admin", CloudsFile: filepath.Join(bed, "clouds.yaml"), Env: func(string) string { return "" }})
	keystone, cinder, nova := service(t, a, "identity", ""), service(t, a, "block-storage", ""), service(t, a, "compute", "")
	name, secret := "bed-"+strings.ToLower(rand.Text()), rand.Text()
	roles := listNamed(t, keystone, "roles", "roles")
	var project struct{ Project struct{ ID string } }
	send(t, keystone, http.MethodPost, "projects", map[string]any{"project": map[string]any{"name": name, "domain_id": "default"}}, &project)
	t.Cleanup(func() { send(t, keystone, http.MethodDelete, "projects/"+project.Project.ID, nil, nil) })
	var user struct{ User struct{ ID string } }
	send(t, keystone, http.MethodPost, "users", map[string]any{"user": map[string]any{"name": name, "domain_id": "default", "password": secret}}, &user)
	t.Cleanup(func() { send(t, keystone, http.MethodDelete, "users/"+user.User.ID, nil, nil) })
	send(t, keystone, http.MethodPut, "projects/"+project.Project.ID+"/users/"+user.User.ID+"/roles/"+roles["member"], nil, nil)
	send(t, cinder, http.MethodPut, "os-quota-sets/"+project.Project.ID, map[string]any{"quota_set": map[string]any{"volumes": 200, "gigabytes": 2000, "snapshots": 50, "backups": 20}}, nil)

	x := &tenant{bed: bed, project: project.Project.ID, authURL: a.AuthURL(), conf: filepath.Join(t.TempDir(), "cloud.conf")}
	text := fmt.Sprintf("[Global]\nauth-url = %s\nregion = RegionOne\nuser-id = %s\npassword = %s\ntenant-id = %s\n", x.authURL, user.User.ID, secret, x.project)
	testfile.Write(t, x.conf, text, 0o600)
	own := connectAs(t, cloud.Settings{
		Name: name, AuthURL: x.authURL, UserID: user.User.ID, Password: cloud.Secret(secret), ProjectID: x.project, Region: "RegionOne",
	})
	x.cinder, x.nova = service(t, own, "block-storage", "3.62"), service(t, own, "compute", "2.87") // the highest of the oldest release in test/bed/clouds
	image := listNamed(t, service(t, own, "image", ""), "v2/images", "images")["lab-node"]
	flavor := listNamed(t, nova, "flavors", "flavors")["lab.small"]
	for i, zone := range zones {
		x.boot(t, fmt.Sprintf("%s-%d", name, i), zone, image, flavor)
	}
	for _, s := range x.servers {
		x.awaitServer(t, s)
	}
	return x
}

func (x *tenant) boot(t *testing.T, name, zone, image, flavor string) {
	t.Helper()
	var made struct{ Server struct{ ID string } }
	send(t, x.nova, http.MethodPost, "servers", map[string]any{"server": map[string]any{
		"name": name, "availability_zone": zone, "imageRef": image, "flavorRef": flavor, "networks": "none",
	}}, &made)
	x.servers = append(x.servers, server{id: made.Server.ID, name: name, zone: zone})
	t.Cleanup(func() {
		send(t, x.nova, http.MethodDelete, "servers/"+made.Server.ID, nil, nil)
		eventually(t, "server "+name+" is gone", func() bool {
			var s struct{}
			return gophercloud.ResponseCodeIs(ask(t, x.nova, http.MethodGet, "servers/"+made.Server.ID, nil, &s), http.StatusNotFound)
		})
	})
}

func (x *tenant) awaitServer(t *testing.T, s server) {
	t.Helper()
	eventually(t, "server "+s.name+" is ACTIVE", func() bool {
		var got struct {
			Server struct {
				Status string
				Fault  any
			}
		}
		send(t, x.nova, http.MethodGet, "servers/"+s.id, nil, &got)
		if got.Server.Status == "ERROR" {
			t.Fatalf("server %s: %v", s.name, got.Server.Fault)
		}
		return got.Server.Status == "ACTIVE"
	})
}

// start starts the driver as one of the project's nodes.
func (x *tenant) start(t *testing.T, on server, args ...string) *driver {
	t.Helper()
	dir := filepath.Join(x.bed, "servers", "by-name", on.name)
	return startDriverWith(t, x.bed, x.conf, append([]string{
		"--config-drive-dir=" + filepath.Join(dir, "config-drive"), "--sys-root=" + filepath.Join(dir, "sys"), "--dev-root=" + filepath.Join(dir, "dev"),
	}, args...)...)
}

// startAnywhere starts only the controller role of the driver.
func (x *tenant) startAnywhere(t *testing.T, args ...string) *driver {
	t.Helper()
	return startDriverWith(t, x.bed, x.conf, append([]string{"--provide-node-service=false"}, args...)...)
}

// startPlugin starts the controller role of another program of the same interface, with flags that upstream's plugin has too.
func (x *tenant) startPlugin(t *testing.T, path string, args ...string) *driver {
	t.Helper()
	return startProgram(t, path, func(d *driver) { d.kill(t) }, append([]string{"--cloud-config=" + x.conf, "--cluster=bed", "--v=4", "--provide-node-service=false"}, args...)...)
}

// holds counts the objects in the project, by kind.
func (x *tenant) holds(t *testing.T) map[string]int {
	t.Helper()
	held := map[string]int{}
	for _, kind := range []string{"volumes", "snapshots", "backups", "attachments"} {
		answer := map[string]any{}
		send(t, x.cinder, http.MethodGet, kind, nil, &answer)
		if list, _ := answer[kind].([]any); len(list) > 0 {
			held[kind] = len(list)
		}
	}
	return held
}

// named are the IDs of the volumes of a name in the project.
func (x *tenant) named(t *testing.T, name string) (ids []string) {
	t.Helper()
	var answer struct{ Volumes []struct{ ID string } }
	send(t, x.cinder, http.MethodGet, "volumes?name="+name, nil, &answer)
	for _, v := range answer.Volumes {
		ids = append(ids, v.ID)
	}
	return ids
}

func connect(t *testing.T, source cloud.Source) *cloud.Cloud {
	t.Helper()
	settings := testenv.Value(cloud.FromSource(source))(t)
	return connectAs(t, settings)
}

func connectAs(t *testing.T, s cloud.Settings) *cloud.Cloud {
	t.Helper()
	c := testenv.Value(cloud.Connect(t.Context(), s, cloud.Options{}))(t)
	t.Cleanup(c.Close)
	return c
}

func service(t *testing.T, c *cloud.Cloud, kind, microversion string) *gophercloud.ServiceClient {
	t.Helper()
	client := testenv.Value(c.Client(kind, microversion))(t)
	return client
}

// send makes a call that must succeed, also after the test's own context has ended.
func send(t *testing.T, c *gophercloud.ServiceClient, method, path string, body, answer any) {
	t.Helper()
	testenv.Must(t, ask(t, c, method, path, body, answer))
}

func ask(t *testing.T, c *gophercloud.ServiceClient, method, path string, body, answer any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(time.Minute))
	defer cancel()
	options := &gophercloud.RequestOpts{JSONBody: body, OkCodes: []int{200, 201, 202, 204}}
	if answer != nil {
		options.JSONResponse = answer
	}
	resp, err := c.Request(ctx, method, c.ServiceURL(path), options)
	if err == nil && answer == nil {
		err = resp.Body.Close()
	}
	return err
}

// listNamed returns the IDs in a list by their names.
func listNamed(t *testing.T, c *gophercloud.ServiceClient, path, key string) map[string]string {
	t.Helper()
	answer := map[string]any{}
	send(t, c, http.MethodGet, path, nil, &answer)
	ids := map[string]string{}
	list, _ := answer[key].([]any)
	for _, item := range list {
		object, _ := item.(map[string]any)
		name, _ := object["name"].(string)
		ids[name], _ = object["id"].(string)
	}
	return ids
}

// eventually repeats a check for up to a minute.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient(time.Minute)); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patient(time.Minute), what)
		}
	}
}
