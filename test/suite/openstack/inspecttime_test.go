//go:build openstack

package openstack

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// measurements is how often each thing is measured; the median counts.
const measurements = 5

// TestInspectTakesAboutAsLongAsItsSlowestCall measures, in one run, each request of inspect alone and then the whole program. It prints the
// figures and asserts none: other work on the machine would fail it.
func TestInspectTakesAboutAsLongAsItsSlowestCall(t *testing.T) {
	bed, generator := bed(t), program(t, "cinder-csi-generator")
	for _, user := range []string{"lab-demo", "lab-demo-admin", "lab-appcred"} {
		slowest, call := slowestCall(t, cloudsFile(bed), user)
		var peak int64
		whole := median(t, func() func() {
			return func() {
				c := exec.CommandContext(t.Context(), generator, "inspect", "--os-cloud", user, "-o", "json")
				c.Env = cloudsFile(bed)
				testenv.Must(t, c.Run())
				peak = max(peak, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
		})
		aim := slowest*3/2 + 200*time.Millisecond
		t.Logf("%s: inspect %s with login; slowest request alone %s (%s); ratio %.1f; aim %s; peak of memory %d MiB",
			user, whole.Round(time.Millisecond), slowest.Round(time.Millisecond), call, whole.Seconds()/slowest.Seconds(), aim.Round(time.Millisecond), peak>>10)
	}
}

// slowestCall sends each request of inspect alone, and the login.
func slowestCall(t *testing.T, env []string, user string) (slowest time.Duration, name string) {
	t.Helper()
	_, file, _ := strings.Cut(env[0], "=")
	settings := testenv.Value(cloud.FromSource(cloud.Source{CloudName: user, CloudsFile: file, Env: func(string) string { return "" }}))(t)
	var c *cloud.Cloud
	slowest, name = median(t, func() func() {
		return func() {
			c = testenv.Value(cloud.Connect(t.Context(), settings, cloud.Options{}))(t)
		}
	}), "login"
	for _, call := range inspect.Calls {
		path := strings.NewReplacer("{project}", c.ProjectID(), "{id}", "00000000-0000-4000-8000-000000000000").Replace(strings.TrimPrefix(call.Path, "/"))
		took := median(t, func() func() {
			// A service validates a token when it sees it first, so each measurement has a new one, as a new process has.
			c = testenv.Value(cloud.Connect(t.Context(), settings, cloud.Options{}))(t)
			client := testenv.Value(c.Client(call.Service, call.Microversion))(t)
			return func() { get(t, client, path) }
		})
		if took > slowest {
			slowest, name = took, call.Method+" "+call.Service+call.Path
		}
	}
	return slowest, name
}

// get sends one request; a refusal takes as long as an answer.
func get(t *testing.T, client *gophercloud.ServiceClient, path string) {
	t.Helper()
	resp, _ := client.Get(t.Context(), client.Endpoint+path, nil, &gophercloud.RequestOpts{KeepResponseBody: true})
	if resp != nil {
		resp.Body.Close()
	}
}

// median is the median time of what prepare returns.
func median(t *testing.T, prepare func() func()) time.Duration {
	t.Helper()
	times := make([]time.Duration, measurements)
	for i := range times {
		do := prepare()
		began := time.Now()
		do()
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[measurements/2]
}
