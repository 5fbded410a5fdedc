package driver_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestTwoCloudsInOneController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		plain := string(sim.CloudConf(inprocess.URL))
		conf := strings.Replace(plain, "[Global]", `[Global "east"]`, 1) + strings.Replace(plain, "[Global]", `[Global "west"]`, 1)
		d := start(t, []byte(conf), memnet.Transport(sim.Handler()), "--cloud-name=east", "--cloud-name=west")
		in := func(name string) func(*csi.CreateVolumeRequest) {
			return func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"cloud": name} }
		}
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", in("west"))))
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-2"))
		wantCode(t, err, codes.InvalidArgument, `"east", "west"`)
	})
}

func TestTwoCloudsWithFilesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, clouds := t.TempDir(), map[string]*openstacksim.Sim{}
		var conf strings.Builder
		for i, name := range []string{"east", "west"} {
			its := openstacksim.Default()
			its.Seed = uint64(i + 1)
			sim := openstacksim.New(its)
			a := another(sim, name)
			clouds[name+".test"] = sim
			yaml := fmt.Sprintf("clouds: {x: {auth: {auth_url: 'http://%s.test/identity/v3', application_credential_id: %s, application_credential_secret: %s}}}\n", name, a.ID, a.Secret)
			path := filepath.Join(dir, name+".yaml")
			testfile.Write(t, path, yaml, 0o600)
			fmt.Fprintf(&conf, "[Global %q]\nuse-clouds = true\nclouds-file = %s\ncloud = x\n", name, path)
		}
		byHost := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { clouds[r.Host].Handler().ServeHTTP(w, r) })
		d := start(t, []byte(conf.String()), memnet.Transport(byHost), "--cloud-name=east", "--cloud-name=west")
		ids := map[string]string{}
		for _, name := range []string{"east", "west", "east"} { // back and forth: neither remembers the other's file
			in := map[string]string{"cloud": name}
			v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Secrets = in }))).GetVolume()
			if old := ids[name]; old != "" && old != v.GetVolumeId() {
				t.Errorf("%s has two volumes, %s and %s", name, old, v.GetVolumeId())
			}
			ids[name] = v.GetVolumeId()
		}
		if ids["east"] == ids["west"] || len(listed(t, d)) != 2 {
			t.Errorf("got %v, listed %v", ids, listed(t, d))
		}
		_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: ids["east"]})
		wantCode(t, err, codes.InvalidArgument, `"east", "west"`)
		// A new credential for one of them is taken, and the other's login stays.
		fresh := another(clouds["west.test"], "next")
		text := fmt.Sprintf("clouds: {x: {auth: {auth_url: 'http://west.test/identity/v3', application_credential_id: %s, application_credential_secret: %s}}}\n", fresh.ID, fresh.Secret)
		project(t, filepath.Join(dir, "west.yaml"), []byte(text))
		before := clouds["east.test"].RequestCount()
		d.Changed <- struct{}{}
		time.Sleep(time.Second)
		if d.Metric(t, reloaded) != 1 {
			t.Errorf("not reloaded\n%s", d.Log)
		}
		if clouds["east.test"].RequestCount() != before || !strings.Contains(d.Log.String(), `changed="[Global west]"`) {
			t.Errorf("the other cloud was asked, or the log does not say which changed\n%s", d.Log)
		}
	})
}

// A key at a wrong place has no effect. The log says so once, also when the file is read again.
func TestAKeyOfCloudsYAMLThatIsNotReadIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		a := another(sim, "depot")
		path := filepath.Join(t.TempDir(), "clouds.yaml")
		yaml := "clouds: {x: {auth: {auth_url: 'http://cloud.test/identity/v3', application_credential_id: %s, application_credential_secret: %s, region_name: mine}}}\n"
		testfile.Write(t, path, fmt.Appendf(nil, yaml, a.ID, a.Secret), 0o600)
		conf := fmt.Sprintf("[Global]\nuse-clouds = true\nclouds-file = %s\ncloud = x\n", path)
		d := start(t, []byte(conf), memnet.Transport(sim.Handler()))
		made(t, d)
		testfile.Write(t, d.CloudConf, conf+"# again\n", 0o600)
		time.Sleep(2 * time.Minute)
		const line = `level=WARN msg="a key of clouds.yaml is not read"`
		if log := d.Log.String(); strings.Count(log, line) != 1 || !strings.Contains(log, "auth.region_name is misplaced") {
			t.Errorf("want one line %s about auth.region_name in:\n%s", line, log)
		}
	})
}
