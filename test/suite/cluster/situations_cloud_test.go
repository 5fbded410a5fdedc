//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var cloudSituations = []situation{
	{name: "detach", cause: "detach.stuck", says: []string{"the log of nova-compute on the host of the server has the reason"}, begin: stuckDetach},
	{name: "cloud-down", cause: "cloud.unreachable", begin: func(t *testing.T, c *cluster) func() error {
		c.cutCloud(t)
		c.waits("cloud-down", t)
		return func() error { c.joinCloud(t); return c.becomesReady("cloud-down") }
	}},
	{
		name: "clock", command: []string{"cinder-csi-generator", "doctor", "--os-cloud", "lab-demo", "--skip-cluster"},
		says: []string{"cloud.clock", "behind that of this machine"}, begin: keystoneBehind,
	},
	{name: "credentials", cause: "cloud.credentials", says: []string{"rotate-credentials.md", "troubleshoot.md#a-clock-is-wrong"}, begin: deletedCredential},
	{name: "ca", cause: "cloud.certificate", says: []string{"unknown authority", "rotate-credentials.md#the-ca-changed"}, begin: otherCA},
}

// waits makes a claim and a pod that cannot get it yet.
func (c *cluster) waits(name string, t *testing.T) {
	t.Helper()
	c.create(t, []claim{{name: name, gib: 1}}, pod{name: name, claim: name, node: "node-az1"})
}

// becomesReady waits for the pod of a situation that has ended, and deletes it.
func (c *cluster) becomesReady(name string) error {
	_, _, err := c.try(context.Background(), "", "kubectl", "wait", "pod/"+name, "--namespace="+c.namespace, "--for=condition=Ready", atMost)
	return errors.Join(err, c.deletedPod(name))
}

// stuckDetach has no nova-compute for the zone of a server, so that Nova accepts the detach and does not finish it.
func stuckDetach(t *testing.T, c *cluster) func() error {
	c.start(t, []claim{{name: "detach", gib: 1}}, pod{name: "detach", claim: "detach", node: "node-az2"})
	c.stopService(t, "nova-compute-az2")
	t.Cleanup(func() { _, _ = c.startServices(context.Background()) })
	c.deletePod(t, "detach")
	return func() error {
		_, err := c.startServices(context.Background())
		c.awaitStatus(t, c.volumeOf(t, "detach"), "available")
		return err
	}
}

// fakeTime gives a program another clock, if the program asks the C library for the time.
const fakeTime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"

// keystoneBehind starts Keystone with a clock 25 hours behind that of everybody else. Go does not ask the C library for the time, so the clock of no client is
// changed: only the difference counts.
func keystoneBehind(t *testing.T, c *cluster) func() error {
	pid := c.servicePID(t, "keystone")
	read := func(name string) []string {
		text := testfile.Text(t, filepath.Join("/proc", strconv.Itoa(pid), name))
		return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	}
	args, env := read("cmdline"), read("environ")
	if _, err := os.Stat(fakeTime); err != nil {
		t.Fatalf("`make cluster-up` installs libfaketime: %v", err)
	}
	c.stopService(t, "keystone")
	keystone := exec.Command(args[0], args[1:]...)
	keystone.Env = append(env, "LD_PRELOAD="+fakeTime, "FAKETIME=-25h")
	keystone.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testenv.Must(t, keystone.Start())
	end := func() error {
		_ = syscall.Kill(-keystone.Process.Pid, syscall.SIGKILL)
		_ = keystone.Wait()
		_, err := c.startServices(context.Background())
		return err
	}
	t.Cleanup(func() { _ = end() })
	url := strings.TrimSpace(c.run(t, "openstack", "--os-cloud", "lab-demo", "configuration", "show", "-f", "value", "-c", "auth.auth_url"))
	eventually(t, patience, "Keystone with the other clock answers", func() error {
		_, _, err := c.try(t.Context(), "", "curl", "--silent", "--fail", "--insecure", "--output", "/dev/null", url)
		return err
	})
	return end
}

// servicePID is the process of a service of the OpenStack bed.
func (c *cluster) servicePID(t *testing.T, name string) int {
	t.Helper()
	text := testfile.Text(t, filepath.Join(c.openstack, "run", name+".pid"))
	pid := testenv.Value(strconv.Atoi(strings.Fields(text)[0]))(t)
	return pid
}

// deletedCredential gives the driver an application credential of its own, and deletes that once every controller uses it.
func deletedCredential(t *testing.T, c *cluster) func() error {
	return c.otherCredential(t, "credentials")
}

// otherCredential gives the driver an application credential of its own, made with these flags, and has a pod wait for a claim. Without flags the
// credential is deleted once every controller uses it.
func (c *cluster) otherCredential(t *testing.T, pod string, flags ...string) func() error {
	t.Helper()
	const name = "situation"
	before, own := c.secretText(t), c.ownCredential(t, name, flags...)
	c.reload(t, func() error { return c.setSecret(own) })
	if len(flags) == 0 {
		c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo", "application", "credential", "delete", name)
	}
	c.waits(pod, t)
	return func() error {
		c.reload(t, func() error { return c.setSecret(before) })
		if len(flags) > 0 {
			if _, err := c.within("/usr/bin/openstack", "--os-cloud", "lab-demo", "application", "credential", "delete", name); err != nil {
				return err
			}
		}
		return c.becomesReady(pod)
	}
}

var (
	credentialID     = regexp.MustCompile(`(application_credential_id: ).*`)
	credentialSecret = regexp.MustCompile(`(application_credential_secret: ).*`)
)

// ownCredential makes an application credential with these flags, and gives the clouds.yaml of the driver with it. It goes with the test.
func (c *cluster) ownCredential(t *testing.T, name string, flags ...string) string {
	t.Helper()
	t.Cleanup(func() {
		_, _ = c.within("/usr/bin/openstack", "--os-cloud", "lab-demo", "application", "credential", "delete", name)
	})
	var made struct{ ID, Secret string }
	out := c.run(t, "/usr/bin/openstack", append([]string{"--os-cloud", "lab-demo", "application", "credential", "create", name, "-f", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Secret == "" {
		t.Fatalf("the application credential: %v", err)
	}
	own := credentialID.ReplaceAllString(c.secretText(t), "${1}"+made.ID)
	return credentialSecret.ReplaceAllString(own, "${1}"+made.Secret)
}

// otherCA has the cloud show a certificate of another CA. Who logs in from here has the new CA, and the driver does not.
func otherCA(t *testing.T, c *cluster) func() error {
	tls := filepath.Join(c.openstack, "state", "tls")
	testenv.Must(t, os.Remove(filepath.Join(tls, "server.pem")))
	c.stopService(t, "tls-proxy")
	if _, err := c.startServices(t.Context()); err != nil { // makes the new CA
		t.Fatal(err)
	}
	c.waits("ca", t)
	return func() error {
		c.reload(t, func() error {
			patch := fmt.Sprintf(`kubectl create secret generic cinder-csi-credentials --namespace %s --from-file=cacert=%s/ca.pem --dry-run=client -o json | jq '{data}'`, namespaces["controller"], tls)
			_, _, err := c.try(context.Background(), "", "bash", "-e", "-o", "pipefail", "-c",
				`kubectl patch secret cinder-csi-credentials --namespace `+namespaces["controller"]+` --type=merge -p "$(`+patch+`)"`)
			return err
		})
		return c.becomesReady("ca")
	}
}

// reload changes the credentials, and waits until every controller pod uses them.
func (c *cluster) reload(t *testing.T, change func() error) {
	t.Helper()
	reloads := func() map[string]int {
		found := map[string]int{}
		for _, p := range c.driverPods(t, "controller") {
			out, _, err := c.try(context.Background(), "", "kubectl", "logs", p.Name, "--namespace="+namespaces["controller"], "--container=driver", "--tail=-1")
			if err != nil {
				t.Fatal(err)
			}
			found[p.Name] = strings.Count(out, "reloaded the configuration")
		}
		return found
	}
	before := reloads()
	testenv.Must(t, change())
	eventually(t, patience, "every controller pod uses the changed Secret", func() error {
		for name, n := range reloads() {
			if n <= before[name] {
				return fmt.Errorf("pod %s has not reloaded the configuration", name)
			}
		}
		return nil
	})
}
