package command_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestRecoverNeedsNoClusterAndSaysWhatItCouldNotDo(t *testing.T) {
	sim, env, volume := simulated(t)
	backups := openstacksim.Fault{Path: "/volume/v3/*/backups/detail", Status: http.StatusForbidden}
	volumes := openstacksim.Fault{Path: "/volume/v3/*/volumes/detail", Status: http.StatusForbidden}
	for _, test := range []struct {
		name  string
		args  []string
		fault *openstacksim.Fault
		code  int
		out   string
		says  string
	}{
		{"a volume without a claim", []string{"--cluster-id", "blue"}, nil, 1, "volumeHandle: " + volume, "1 of 1 objects contain FILL-IN"},
		{"a table", []string{"--cluster-id", "blue", "-o", "table"}, nil, 1, volume, "FILL-IN"},
		{"no ID", nil, nil, 64, "", `this project has "blue" (1 volume), "green" (1 volume), "red" (1 volume)`},
		{"no such ID", []string{"--cluster-id", "purple"}, nil, 1, "", `nothing in the project has the mark "purple"; this project has "blue"`},
		{"the commands", []string{"--cluster-id", "blue", "--new-cluster-id", "red", "-o", "commands"}, nil, 1, "openstack --os-cloud sim-demo volume set --property cinder.csi.openstack.org/cluster=red " + volume + "\n", "FILL-IN"},
		{"the commands for a cloud", []string{"--cluster-id", "blue", "--new-cluster-id", "red", "-o", "commands", "--os-region-name", "RegionOne"}, nil, 1, "openstack --os-cloud sim-demo --os-region-name RegionOne volume set ", "FILL-IN"},
		{"no command is needed", []string{"--cluster-id", "blue", "-o", "commands"}, nil, 1, "", "FILL-IN"},
		{"volumes denied", []string{"--cluster-id", "blue"}, &volumes, 1, "", "list the volumes in Cinder"},
		{"backups denied", []string{"--cluster-id", "blue"}, &backups, 1, "# - Not seen, so not here: the backups in Cinder", "not everything could be read: the backups in Cinder"},
		{"no class", []string{"--cluster-id", "blue", "--storage-class", "fast=A b"}, nil, 64, "", "TYPE=CLASS"},
		{"no zone", []string{"--cluster-id", "blue", "--zone-map", "az1"}, nil, 64, "", "--zone-map"},
		{"no driver", []string{"--cluster-id", "blue", "--driver-name", "A"}, nil, 64, "", "--driver-name"},
		{"one ID", []string{"--cluster-id", "blue", "--id", volume}, nil, 1, "volumeHandle: " + volume, "1 of 1 objects"},
		{"another ID", []string{"--cluster-id", "blue", "--id", "00000000-0000-4000-8000-000000000001"}, nil, 1, "", "has an ID of --id"},
		{"no ID of Cinder", []string{"--cluster-id", "blue", "--id", "x"}, nil, 64, "", "no ID of Cinder"},
		{"no form", []string{"--cluster-id", "blue", "-o", "html"}, nil, 64, "", "yaml, json, table, commands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.fault != nil {
				defer sim.SetFault(*test.fault)()
			}
			stdout, stderr, code, asked := pluginWith(t, env, nil, append([]string{"recover"}, test.args...)...)
			if code != test.code || !strings.Contains(stdout, test.out) || !strings.Contains(stderr, test.says) || len(asked) > 0 {
				t.Errorf("want exit %d with %q and %q, and no cluster; got %d: %s%s; %q", test.code, test.out, test.says, code, stdout, stderr, asked)
			}
		})
	}
	_, stderr, code, _ := plugin(t, nil, "recover", "--cluster-id", "blue")
	if code != 64 || !strings.Contains(stderr, "--os-cloud") {
		t.Errorf("want a cloud to be named, got exit %d: %s", code, stderr)
	}
}

func TestRecoverTakesTheOnlyClassOfATypeFromTheNewCluster(t *testing.T) {
	_, env, _ := simulated(t)
	class := func(name, kind, driver string) string {
		return `{"metadata": {"name": "` + name + `"}, "provisioner": "` + driver + `", "parameters": {"type": "` + kind + `"}}`
	}
	const driver = "cinder.csi.openstack.org"
	standard := openstacksim.Default().DefaultVolumeType
	for want, classes := range map[string][]string{
		"the-one": {class("the-one", standard, driver), class("x", "other", driver), class("y", standard, "other.example")},
		"":        {class("one", standard, driver), class("two", standard, driver)},
		"named":   {class("the-one", standard, driver)},
	} {
		servers := map[string]map[string]string{"new": {"/apis/storage.k8s.io/v1/storageclasses": `{"items": [` + strings.Join(classes, ",") + `]}`}}
		args := []string{"recover", "--cluster-id", "blue", "--kubeconfig", "new", "--classes-from-cluster", "-o", "json"}
		if want == "named" {
			args = append(args, "--storage-class", standard+"=named")
		}
		stdout, stderr, _, _ := pluginWith(t, env, servers, args...)
		var list struct{ Items []corev1.PersistentVolume }
		if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Items) != 2 || list.Items[0].Spec.StorageClassName != want {
			t.Errorf("want class %q, got %v: %s%s", want, err, stdout, stderr)
		}
	}
	stdout, stderr, code, _ := pluginWith(t, env, map[string]map[string]string{"new": {}}, "recover", "--cluster-id", "blue", "--kubeconfig", "new", "--classes-from-cluster")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "storageclasses") {
		t.Errorf("want an error if the classes cannot be read, got exit %d: %s%s", code, stdout, stderr)
	}
}
