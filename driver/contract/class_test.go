package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStorageClassParameters(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       StorageClass
		unknown    []string
		problem    string // part of the error's text
	}{
		"none":         {},
		"type, zone":   {parameters: map[string]string{"type": "fast", "availability": "az 1"}, want: StorageClass{Type: "fast", Zone: "az 1"}},
		"from sidecar": {parameters: map[string]string{"csi.storage.k8s.io/fstype": "xfs", "csi.storage.k8s.io/provisioner-secret-name": "s"}},
		"claim": {
			parameters: map[string]string{
				"csi.storage.k8s.io/pvc/name": "claim", "csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pv/name": "pvc-1",
			},
			want: StorageClass{PVCName: "claim", PVCNamespace: "shop", PVName: "pvc-1"},
		},
		"metadata": {
			parameters: map[string]string{"appendVolumeMetadata": `{"team": "storage"}`},
			want:       StorageClass{Metadata: map[string]string{"team": "storage"}},
		},
		"metadata that is no object":     {parameters: map[string]string{"appendVolumeMetadata": "team=storage"}, problem: "JSON object of strings"},
		"metadata that is not text":      {parameters: map[string]string{"appendVolumeMetadata": `{"a": 1}`}, problem: "JSON object of strings"},
		"metadata with an empty key":     {parameters: map[string]string{"appendVolumeMetadata": `{"": "x"}`}, problem: "1 to 255"},
		"metadata with a long key":       {parameters: map[string]string{"appendVolumeMetadata": `{"` + strings.Repeat("k", 256) + `": "v"}`}, problem: "keys of 1 to 255"},
		"metadata with a long value":     {parameters: map[string]string{"appendVolumeMetadata": `{"a": "` + strings.Repeat("ü", 256) + `"}`}, problem: "255"},
		"metadata with our own key":      {parameters: map[string]string{"appendVolumeMetadata": `{"cinder.csi.openstack.org/cluster": "x"}`}, problem: "driver itself"},
		"unknown keys are told, sorted":  {parameters: map[string]string{"volume_type": "a", "Type": "b"}, unknown: []string{"Type", "volume_type"}},
		"unknown keys of the sidecars":   {parameters: map[string]string{"csi.storage.k8s.io/fsType": "a"}, unknown: []string{"csi.storage.k8s.io/fsType"}},
		"metadata of 255 two-byte runes": {parameters: map[string]string{"appendVolumeMetadata": `{"a": "` + strings.Repeat("ü", 255) + `"}`}, want: StorageClass{Metadata: map[string]string{"a": strings.Repeat("ü", 255)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown, err := ParseStorageClass(test.parameters)
			if !problemIs(err, test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("-want +got\n", diff)
			}
			if diff := cmp.Diff(test.unknown, unknown); diff != "" {
				t.Error("unknown keys, -want +got\n", diff)
			}
		})
	}
}

func TestSnapshotClassParameters(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       SnapshotClass
		unknown    []string
		problem    string
	}{
		"none": {want: SnapshotClass{Kind: KindSnapshot, BackupTime: 20 * time.Second}},
		"all": {
			parameters: map[string]string{
				"type": "backup", "force-create": "true", "availability": "az1", "backup-max-duration-seconds-per-gb": "5", "incremental": "True",
			},
			want: SnapshotClass{Kind: KindBackup, Force: true, Zone: "az1", BackupTime: 5 * time.Second, Incremental: true},
		},
		"sidecar's": {
			parameters: map[string]string{"csi.storage.k8s.io/volumesnapshot/name": "s", "csi.storage.k8s.io/snapshotter-secret-name": "x"},
			want:       SnapshotClass{Kind: KindSnapshot, BackupTime: 20 * time.Second},
		},
		"unknown": {
			parameters: map[string]string{"forceCreate": "true"},
			want:       SnapshotClass{Kind: KindSnapshot, BackupTime: 20 * time.Second}, unknown: []string{"forceCreate"},
		},
		"bad type":        {parameters: map[string]string{"type": "clone"}, problem: "neither snapshot nor backup"},
		"bad force":       {parameters: map[string]string{"force-create": "yes"}, problem: "neither true nor false"},
		"bad incremental": {parameters: map[string]string{"incremental": "si"}, problem: "neither true nor false"},
		"bad time":        {parameters: map[string]string{"backup-max-duration-seconds-per-gb": "0"}, problem: "above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown, err := ParseSnapshotClass(test.parameters)
			if !problemIs(err, test.problem) {
				t.Fatalf("want an error with %q, got %v", test.problem, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("-want +got\n", diff)
			}
			if diff := cmp.Diff(test.unknown, unknown); diff != "" {
				t.Error("unknown keys, -want +got\n", diff)
			}
		})
	}
}

func problemIs(err error, problem string) bool {
	if problem == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), problem)
}

func TestZoneLabels(t *testing.T) {
	for zone, want := range map[string]string{
		"":                              "",
		"az1":                           "az1",
		"zone 1":                        "zone-1",
		"zone: (1)":                     "zone-1",
		"--a..b__":                      "a..b",
		"Düsseldorf/1":                  "D-sseldorf-1",
		strings.Repeat("a", 70):         strings.Repeat("a", 63),
		strings.Repeat("a", 62) + " bc": strings.Repeat("a", 62),
		"///":                           "",
	} {
		if got := sanitizeZone(zone); got != want {
			t.Errorf("%q: want %q, got %q", zone, want, got)
		}
	}
}

func TestNearestKey(t *testing.T) {
	for key, want := range map[string]string{
		"volume-type": "", "Type": "type", "tpye": "type", "availabilty": "availability", "append_volume_metadata": "appendVolumeMetadata",
		"csi.storage.k8s.io/fsType": "csi.storage.k8s.io/fstype", "zzz": "", "": "",
	} {
		got, ok := Nearest(key, StorageClassKeys)
		if got != want || ok != (want != "") {
			t.Errorf("%q: want %q, got %q, %v", key, want, got, ok)
		}
	}
}

func FuzzSanitizeZone(f *testing.F) {
	for _, seed := range []string{"", "az1", "zone 1", "ä", strings.Repeat("a-", 40), "_._"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, zone string) {
		label := sanitizeZone(zone)
		if len(label) > 63 || notLabel.MatchString(label) || strings.Trim(label, "-_.") != label {
			t.Errorf("%q gives %q, which is no label value", zone, label)
		}
		if again := sanitizeZone(label); again != label {
			t.Errorf("%q gives %q, and that %q", zone, label, again)
		}
	})
}

func FuzzParseStorageClass(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a": "b"}`, "null", "[]", `{"a": null}`} {
		f.Add("type", "fast", seed)
	}
	for _, value := range []string{"4096", "512", "8192", "04096", "-1", "4k", "9223372036854775808"} {
		for _, key := range []string{ParameterBlockSize, ParameterInodeSize, ParameterBytesPerInode, ParameterInodes} {
			f.Add(key, value, "{}")
		}
	}
	f.Fuzz(func(t *testing.T, key, value, metadata string) {
		class, unknown, err := ParseStorageClass(map[string]string{key: value, ParameterMetadata: metadata})
		if err != nil {
			return
		}
		for k, v := range class.Metadata {
			if k == "" || len([]rune(k)) > 255 || len([]rune(v)) > 255 {
				t.Errorf("metadata %q=%q would be refused by Cinder", k, v)
			}
		}
		if len(unknown) > 1 {
			t.Errorf("%q: unknown %q", key, unknown)
		}
		again, err := FormatOfContext(class.Format.Context())
		if again != class.Format || err != nil || class.Format.BlockSize > 4096 {
			t.Errorf("%q=%q gives %+v, and from its VolumeContext %+v, %v", key, value, class.Format, again, err)
		}
	})
}

func FuzzParseSnapshotClass(f *testing.F) {
	f.Add("type", "backup")
	f.Add("backup-max-duration-seconds-per-gb", "99999999999")
	f.Add("force-create", "TRUE")
	f.Fuzz(func(t *testing.T, key, value string) {
		class, _, err := ParseSnapshotClass(map[string]string{key: value})
		if err == nil && (class.BackupTime <= 0 || class.Kind != KindSnapshot && class.Kind != KindBackup) {
			t.Errorf("%q=%q gives %+v", key, value, class)
		}
	})
}

func TestMetadataWithControlCharactersIsRefused(t *testing.T) {
	for name, parameters := range map[string]map[string]string{
		"of a class":  {ParameterMetadata: `{"team": "a\u001b[31m"}`},
		"of a claim":  {MetadataPVCName: "a\nb"},
		"of a type":   {ParameterType: "fast\x1b[2J"},
		"of a zone":   {ParameterZone: "az1\x1b[2J"},
		"a long name": {MetadataPVCNamespace: strings.Repeat("x", 256)},
	} {
		class, _, err := ParseStorageClass(parameters)
		if err == nil {
			_, err = class.VolumeMetadata()
		}
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	if _, err := ParseAttributesClass(map[string]string{ParameterType: "fast\x1b[2J"}); err == nil {
		t.Error("a new type: it is taken")
	}
	for _, zone := range []string{"az1\x1b[2J", "az1\n", strings.Repeat("x", 256)} {
		if _, _, err := ParseSnapshotClass(map[string]string{ParameterType: "backup", ParameterZone: zone}); err == nil {
			t.Errorf("a backup in zone %.10q: it is taken", zone)
		}
	}
}
