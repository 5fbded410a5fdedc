package readme

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = "# A\n\n## Apply\n\nText.\n\n```sh\n# here\nDIR=.\nkubectl a\n# there\nCHART=/x\nkubectl b\n```\n\n```sh\nhelm c\n```\n\n## Swap\n\n1. One:\n\n       a='x'\n       b | jq \"$a\" \\\n         c\n\n2. Two\n   three\n\n    d\n\n## Table\n\n```yaml\na: b\n```\n\n## Empty\n"

func TestCommandsAndBlocksOfASection(t *testing.T) {
	commands, err := Commands(document, "Apply", map[string]string{"DIR": "/d", "CHART": "c"})
	if diff := cmp.Diff([]string{"DIR=/d; kubectl a", "DIR=/d; CHART=c; kubectl b", "helm c"}, commands); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	blocks, err := Blocks(document, "Swap")
	if diff := cmp.Diff([]string{"a='x'\nb | jq \"$a\" \\\n  c", "d"}, blocks); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{"Missing", "Table", "Empty"} {
		if _, err := Commands(document, name, nil); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	if _, err := Commands(document, "Apply", map[string]string{"DIR": "/d"}); err == nil {
		t.Error("want an error for a path that is not given")
	}
	for _, name := range []string{"Missing", "Apply"} {
		if _, err := Blocks(document, name); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestABlockIsFoundByATextOfIt(t *testing.T) {
	if block, err := BlockWith(document, "Swap", "jq"); err != nil || block != "a='x'\nb | jq \"$a\" \\\n  c" {
		t.Errorf("got %q, %v", block, err)
	}
	for section, says := range map[string]string{"Missing": `there is no section "Missing"`, "Swap": `the section "Swap" has no code block with "nothing"`} {
		if _, err := BlockWith(document, section, "nothing"); err == nil || err.Error() != says {
			t.Errorf("%s: want %q, got %v", section, says, err)
		}
	}
}

func TestFencedBlocksLoseTheIndentationOfTheirList(t *testing.T) {
	text := "1. Do it:\n\n   ```sh\n   a |\n     b\n   ```\n\n```yaml\nkind: X\n```\n\n```sh\nc\n```\n"
	if diff := cmp.Diff([]string{"a |\n  b\n", "c\n"}, Fenced(text, "sh")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
