package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestAPullRequestCommentSaysTheVerdictFirst(t *testing.T) {
	removed := v1alpha1.Change{
		Class: v1alpha1.CloudChange, Message: "cloud: volume type \"ssd_1\" is gone: StorageClass ssd is removed",
		Objects: []string{"StorageClass/ssd"}, Accept: "class-removed",
	}
	edited := v1alpha1.Change{Class: v1alpha1.HandEdit, Message: "handEdit: values.yaml was edited by hand", Force: true}
	governed := v1alpha1.Change{Class: v1alpha1.ConfigChange, Message: "config: replicas changes from 2 to 3", Objects: []string{"Deployment/cinder-csi-controller"}}
	cases := []struct {
		name string
		in   v1alpha1.Changes
		want string
	}{
		{"nothing changed", v1alpha1.Changes{UpToDate: true}, "### The cinder-csi bundle is up to date\n"},
		{
			"a change that generate applies",
			v1alpha1.Changes{Changes: []v1alpha1.Change{governed}},
			"### The cinder-csi bundle is out of date: 1 change\n\n- **config**: replicas changes from 2 to 3 \\[Deployment/cinder-csi-controller\\]\n",
		},
		{
			"changes that generate refuses",
			v1alpha1.Changes{Accept: []string{"class-removed"}, Force: true, Changes: []v1alpha1.Change{removed, edited}},
			"### The cinder-csi bundle is out of date: 2 changes, and `generate` refuses without `--accept class-removed` and `--force`\n\n" +
				"- **cloud**: volume type \"ssd\\_1\" is gone: StorageClass ssd is removed (generate refuses this without --accept class-removed)\n" +
				"- **handEdit**: values.yaml was edited by hand (generate refuses this without --force)\n",
		},
	}
	for _, c := range cases {
		var out bytes.Buffer
		if err := ChangesMarkdown(&out, c.in); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestACommentHasRoomInGitHub(t *testing.T) {
	for name, message := range map[string]string{"many": "cloud: volume type x is new", "long": "cloud: " + strings.Repeat("*", 40_000)} {
		var out bytes.Buffer
		if err := ChangesMarkdown(&out, v1alpha1.Changes{Changes: slices.Repeat([]v1alpha1.Change{{Message: message}}, 2_000_000/len(message))}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); len(got) > 65_536 || !strings.Contains(got, " more, for which a comment has no room") {
			t.Errorf("%s: want a comment that says what it leaves out, got %d bytes: %.300s", name, len(got), got)
		}
	}
}

func TestANameInTheCloudCannotWriteMarkdown(t *testing.T) {
	var out bytes.Buffer
	hostile := "cloud: volume type \"[x](https://evil.example) <img src=x> @everyone `rm` |\n# head\" is new"
	if err := ChangesMarkdown(&out, v1alpha1.Changes{Changes: []v1alpha1.Change{{Message: hostile}}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 3 {
		t.Errorf("want the change on one line, got %q", got)
	}
	for _, raw := range []string{"[x](", "https://", "<img", "@everyone", " `rm`", " # head"} {
		if strings.Contains(out.String(), raw) {
			t.Errorf("want %q escaped, got %q", raw, out.String())
		}
	}
}
