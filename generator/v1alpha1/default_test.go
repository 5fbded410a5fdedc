package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAConfigurationWithoutItsDefaultsHasTheSameMeaning(t *testing.T) {
	const unnamed = "kubernetes"
	for _, test := range []struct{ name, given, want string }{
		{"nothing is set", "{}", "{}"},
		{"only defaults are set", "{spec: {driver: {logLevel: 2, metadata: [metadataService, configDrive]}, snapshots: {enabled: true}}}", "{}"},
		{"other values stay", "{spec: {driver: {logLevel: 5}, snapshots: {enabled: false}}}", "{spec: {driver: {logLevel: 5}, snapshots: {enabled: false}}}"},
		{"the name", "{metadata: {name: c}}", "{metadata: {name: c}}"},
		{"the cluster ID becomes the name", "{spec: {clusterID: c}}", "{metadata: {name: c}}"},
	} {
		d, err := DecodeDistribution("given", []byte(test.given))
		if err != nil {
			t.Fatal(err)
		}
		want, err := DecodeDistribution("want", []byte(test.want))
		if err != nil {
			t.Fatal(err)
		}
		long := d.WithDefaults()
		got := long.WithoutDefaults(unnamed)
		got.APIVersion, got.Kind = want.APIVersion, want.Kind
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(long, got.WithDefaults()); diff != "" {
			t.Errorf("%s: with its defaults again (-want +got):\n%s", test.name, diff)
		}
	}
}
