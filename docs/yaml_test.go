package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The snapshot objects of external-snapshotter, with the fields that the pages use (its CRDs, snapshot.storage.k8s.io/v1).
type (
	volumeSnapshotClass struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Driver            string            `json:"driver"`
		DeletionPolicy    string            `json:"deletionPolicy"`
		Parameters        map[string]string `json:"parameters,omitempty"`
	}
	volumeSnapshot struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`
			Source                  struct {
				PersistentVolumeClaimName string `json:"persistentVolumeClaimName,omitempty"`
				VolumeSnapshotContentName string `json:"volumeSnapshotContentName,omitempty"`
			} `json:"source"`
		} `json:"spec"`
	}
	volumeSnapshotContent struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			Driver                  string                          `json:"driver"`
			DeletionPolicy          string                          `json:"deletionPolicy"`
			VolumeSnapshotClassName string                          `json:"volumeSnapshotClassName,omitempty"`
			Source                  struct{ SnapshotHandle string } `json:"source"`
			VolumeSnapshotRef       corev1.ObjectReference          `json:"volumeSnapshotRef"`
		} `json:"spec"`
	}
	// kubeletConfiguration has the two keys of kubelet.config.k8s.io/v1beta1 that a page sets.
	kubeletConfiguration struct {
		NodeStatusUpdateFrequency metav1.Duration `json:"nodeStatusUpdateFrequency"`
		NodeStatusReportFrequency metav1.Duration `json:"nodeStatusReportFrequency"`
	}
	// kubeletConfig is that of machineconfiguration.openshift.io/v1.
	kubeletConfig struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			MachineConfigPoolSelector metav1.LabelSelector `json:"machineConfigPoolSelector"`
			KubeletConfig             kubeletConfiguration `json:"kubeletConfig"`
		} `json:"spec"`
	}
)

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// yamlDocuments are the documents in the yaml blocks of a page. A block in a list is indented.
func yamlDocuments(page string) []string {
	var documents []string
	for _, found := range yamlBlock.FindAllStringSubmatch(page, -1) {
		block := strings.TrimPrefix(strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n"), "\n")
		documents = append(documents, strings.Split(block, "\n---\n")...)
	}
	return documents
}

func TestEveryYAMLBlockOfThePagesIsAccepted(t *testing.T) {
	seen := map[string]int{}
	for _, page := range pages(t) {
		for _, document := range yamlDocuments(testfile.Text(t, page)) {
			kind, err := checkDocument(document)
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", page, kind, err, document)
			}
			seen[kind]++
		}
	}
	for _, kind := range []string{"StorageClass", "VolumeSnapshotClass", "VolumeAttributesClass", "Distribution", "PersistentVolume"} {
		if seen[kind] == 0 {
			t.Errorf("no page shows a %s; the test found %v", kind, seen)
		}
	}
}

// checkDocument decodes a document strictly as what its kind says. A part of a document that begins with spec or parameters is that of a
// Distribution or a VolumeAttributesClass.
func checkDocument(text string) (kind string, err error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		return "", err
	}
	switch {
	case head.Kind == "" && strings.HasPrefix(text, "spec:"):
		text = "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\n" + text
		head.Kind = "Distribution"
	case head.Kind == "" && strings.HasPrefix(text, "parameters:"):
		text, head.Kind = "driverName: cinder.csi.openstack.org\n"+text, "VolumeAttributesClass"
	case head.Kind == "" && strings.HasPrefix(text, "volumeDevices:"):
		head.Kind = "Container"
	case head.Kind == "" && strings.HasPrefix(text, "nodeStatus"):
		head.Kind = "KubeletConfiguration"
	}
	into := map[string]any{
		"Kustomization": new(types.Kustomization), "PersistentVolumeClaim": new(corev1.PersistentVolumeClaim), "PersistentVolume": new(corev1.PersistentVolume), "Pod": new(corev1.Pod), "ClusterRole": new(rbacv1.ClusterRole), "Secret": new(corev1.Secret),
		"Container": new(corev1.Container), "ServiceAccount": new(corev1.ServiceAccount), "Role": new(rbacv1.Role), "RoleBinding": new(rbacv1.RoleBinding), "ExternalSecret": new(externalSecret), "VaultStaticSecret": new(vaultStaticSecret),
		"Job": new(batchv1.Job), "CronJob": new(batchv1.CronJob),
		"VolumeSnapshot": new(volumeSnapshot), "VolumeSnapshotContent": new(volumeSnapshotContent),
		"KubeletConfiguration": new(kubeletConfiguration), "KubeletConfig": new(kubeletConfig),
	}
	switch head.Kind {
	case "Distribution":
		_, err = v1alpha1.DecodeDistribution("page", []byte(text))
	case "StorageClass":
		var class storagev1.StorageClass
		err = checkClass(text, &class, &class.Parameters, func(parameters map[string]string) ([]string, error) {
			_, unknown, err := contract.ParseStorageClass(parameters)
			return unknown, err
		})
	case "VolumeSnapshotClass":
		var class volumeSnapshotClass
		err = checkClass(text, &class, &class.Parameters, func(parameters map[string]string) ([]string, error) {
			_, unknown, err := contract.ParseSnapshotClass(parameters)
			return unknown, err
		})
	case "VolumeAttributesClass":
		var class storagev1.VolumeAttributesClass
		err = checkClass(text, &class, &class.Parameters, func(parameters map[string]string) ([]string, error) {
			_, err := contract.ParseAttributesClass(parameters)
			return nil, err
		})
	default:
		if into[head.Kind] == nil {
			return head.Kind, fmt.Errorf("this test does not know the kind %q", head.Kind)
		}
		err = yaml.UnmarshalStrict([]byte(text), into[head.Kind])
	}
	return head.Kind, err
}

// checkClass decodes a class strictly, and then lets the driver read its parameters as with --strict.
func checkClass(text string, class any, parameters *map[string]string, parse func(map[string]string) (unknown []string, err error)) error {
	if err := yaml.UnmarshalStrict([]byte(text), class); err != nil {
		return err
	}
	unknown, err := parse(*parameters)
	// external-provisioner reads the keys for Secrets, and passes on only the Secret.
	unknown = slices.DeleteFunc(unknown, contract.FromSidecar)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("the driver does not know the parameters %q", unknown)
	}
	return err
}

func TestAYAMLBlockThatNobodyAcceptsIsFound(t *testing.T) {
	for name, text := range map[string]string{
		"a parameter that the driver does not know": "kind: StorageClass\nprovisioner: cinder.csi.openstack.org\nparameters: {tpye: fast}",
		"a field that Kubernetes does not know":     "kind: StorageClass\nprovisoner: cinder.csi.openstack.org",
		"a snapshot parameter with another value":   "kind: VolumeSnapshotClass\ndriver: x\nparameters: {type: backups}",
		"a policy without a type":                   "parameters:\n  policy: on-demand",
		"a key that a Distribution does not have":   "spec:\n  clusterId: prod",
		"a kind that the test does not know":        "kind: Deployment",
	} {
		if _, err := checkDocument(text); err == nil {
			t.Errorf("%s: want an error, got none", name)
		}
	}
}
