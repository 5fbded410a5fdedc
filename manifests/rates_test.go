package manifests_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/manifests"
)

// The defaults of the sidecars are 5 requests and 1 capacity a second. With eight pods of new classes at once, a pod waited 90 seconds for the
// capacity of its class. With 20 requests a second, a tenant with 500 claims and a full quota delayed the volumes of another by 24 seconds.
func TestTheProvisionerIsNotHeldBackByTheDefaultRates(t *testing.T) {
	content, err := manifests.Files.ReadFile("base/controller/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name string
						Args []string
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &deployment); err != nil {
		t.Fatal(err)
	}
	args := map[string]bool{}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			if c.Name == "provisioner" {
				args[arg] = true
			}
		}
	}
	for _, want := range []string{"--kube-api-qps=100", "--kube-api-burst=200", "--kube-api-capacity-qps=20", "--kube-api-capacity-burst=100"} {
		if !args[want] {
			t.Errorf("the provisioner has no %s", want)
		}
	}
}
