package driver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// pair is a driver with two clouds that different people operate. The first in the order of names is bad.
type pair struct {
	*instance
	good, bad *openstacksim.Sim
}

func startPair(t *testing.T) pair {
	t.Helper()
	p := pair{good: simulated(), bad: simulated()}
	byHost := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		map[string]*openstacksim.Sim{"good.test": p.good, "bad.test": p.bad}[r.Host].Handler().ServeHTTP(w, r)
	})
	first := openstacksim.Default().ApplicationCredentials[0]
	p.instance = start(t, confOfPair(first, first, ""), memnet.Transport(byHost), "--cloud-name=bad", "--cloud-name=good")
	for _, name := range []string{"good", "bad"} {
		p.create(t, name, "pvc-1")
	}
	return p
}

func confOfPair(good, bad openstacksim.ApplicationCredential, options string) []byte {
	var conf strings.Builder
	for name, a := range map[string]openstacksim.ApplicationCredential{"good": good, "bad": bad} {
		fmt.Fprintf(&conf, "[Global %q]\nauth-url = http://%s.test/identity/v3\napplication-credential-id = %s\napplication-credential-secret = %s\n", name, name, a.ID, a.Secret)
	}
	return []byte(conf.String() + options)
}

func (p pair) create(t *testing.T, cloud, claimed string) *csi.CreateVolumeResponse {
	t.Helper()
	return must[*csi.CreateVolumeResponse](t)(p.CreateVolume(asSidecar(t), claim(claimed, wanted("az2"), of("availability", "az1"), func(r *csi.CreateVolumeRequest) {
		r.Secrets = map[string]string{"cloud": cloud}
	})))
}

// The operator of one cloud decides whether it accepts a new credential, and when it answers. The other cloud works on.
func TestACloudThatCannotBeReloadedHoldsNoOther(t *testing.T) {
	silent := openstacksim.Fault{Method: http.MethodPost, Path: "/identity/v3/auth/tokens", Delay: time.Hour}
	for name, test := range map[string]struct {
		bad   func(p pair, a openstacksim.ApplicationCredential) openstacksim.ApplicationCredential
		event bool // else the refusal of the old credential makes the driver look
	}{
		"it refuses the credential": {func(_ pair, a openstacksim.ApplicationCredential) openstacksim.ApplicationCredential {
			a.Secret = "wrong"
			return a
		}, true},
		"its entry is broken": {func(_ pair, a openstacksim.ApplicationCredential) openstacksim.ApplicationCredential {
			a.Secret = ""
			return a
		}, true},
		"it does not answer": {func(p pair, a openstacksim.ApplicationCredential) openstacksim.ApplicationCredential {
			p.bad.SetFault(silent)
			return a
		}, true},
		"it does not answer, and the other refuses": {func(p pair, a openstacksim.ApplicationCredential) openstacksim.ApplicationCredential {
			p.bad.SetFault(silent)
			return a
		}, false},
	} {
		story(t, strings.ReplaceAll(name, ",", ""), func(t *testing.T) {
			p := startPair(t)
			conf := confOfPair(another(p.good, "next"), test.bad(p, another(p.bad, "next")), "[BlockStorage]\nignore-volume-az = true\n")
			testfile.Write(t, p.CloudConf, conf, 0o600)
			if test.event {
				p.Changed <- struct{}{}
				time.Sleep(10 * time.Second)
			}
			p.good.DeleteApplicationCredential(theFirst(p.good))
			begun := time.Now()
			v := p.create(t, "good", "pvc-2")
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("the other cloud took %s", took)
			}
			// an option belongs to every login
			if zone := v.GetVolume().GetAccessibleTopology()[0].GetSegments()[zoneKey]; zone != "az1" {
				t.Errorf("an option is in force before every login: zone %s", zone)
			}
			time.Sleep(2 * time.Minute)
			log := p.Log.String()
			if !strings.Contains(log, `changed="[Global good]"`) || !strings.Contains(log, "cannot use the changed configuration") || p.Metric(t, unusable) == 0 {
				t.Errorf("the log tells of one only:\n%s", log)
			}
		})
	}
}

// The pages and the metrics name the cloud that does not answer, and no other.
func TestACloudThatDoesNotAnswerTakesNoTimeFromAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPair(t)
		p.bad.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/identity/*", Delay: time.Hour})
		time.Sleep(3 * time.Minute)
		for name, want := range map[string]float64{"good": 0, "bad": 1} {
			if got := p.Metric(t, fmt.Sprintf("cinder_csi_openstack_unavailable{cloud=%q,reason=\"no_connection\",service=\"identity\"}", name)); got != want {
				t.Errorf("%s: want %v, got %v\n%s", name, want, got, p.Log)
			}
		}
	})
}
