package examples

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// rule is an access rule of an application credential.
type rule struct{ Service, Method, Path string }

// documented are the rules between two marks of the reference.
func documented(t *testing.T, mark string) []rule {
	t.Helper()
	block := regexp.MustCompile("(?s)<!-- " + mark + " -->\n```json\n(.*?)```").FindSubmatch(read(t, "../../../docs/reference/access-rules.md"))
	if block == nil {
		t.Fatalf("the reference has no rules of %s", mark)
	}
	var rules []rule
	if err := json.Unmarshal(block[1], &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// local evaluates one of the locals of a Terraform file: a list of access rules.
func local(t *testing.T, body *hclsyntax.Body, name string) []rule {
	t.Helper()
	for _, block := range body.Blocks {
		if block.Type != "locals" || block.Body.Attributes[name] == nil {
			continue
		}
		value, problems := block.Body.Attributes[name].Expr.Value(nil)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		var rules []rule
		for _, element := range value.AsValueSlice() {
			fields := element.AsValueMap()
			rules = append(rules, rule{fields["service"].AsString(), fields["method"].AsString(), fields["path"].AsString()})
		}
		return rules
	}
	t.Fatalf("there is no local %s", name)
	return nil
}

func TestTerraformGrantsExactlyTheDocumentedAccessRules(t *testing.T) {
	const path = root + "terraform/application-credentials.tf"
	file, problems := hclparse.NewParser().ParseHCL(read(t, path), path)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	body := file.Body.(*hclsyntax.Body)
	uses := map[string]string{} // resource to the local that its access rules are of
	for _, block := range body.Blocks {
		if block.Type != "resource" || block.Labels[0] != "openstack_identity_application_credential_v3" {
			continue
		}
		for _, inner := range block.Body.Blocks {
			if inner.Type == "dynamic" && inner.Labels[0] == "access_rules" {
				traversal, problems := hcl.AbsTraversalForExpr(inner.Body.Attributes["for_each"].Expr)
				if problems.HasErrors() {
					t.Fatal(problems)
				}
				uses[block.Labels[1]] = traversal[1].(hcl.TraverseAttr).Name
			}
		}
	}
	for resource, mark := range map[string]string{"driver": "access-rules", "generator": "generator-rules"} {
		got, want := local(t, body, uses[resource]), documented(t, mark)
		if !slices.Equal(want, got) {
			t.Errorf("%s: want the rules of the reference\n%v\ngot\n%v", resource, want, got)
		}
	}
}
