package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// Words of an event that a tenant chose begin no line of a report as its own words do, at any width of the terminal.
func TestNoTextOfOthersBeginsALineOfAReport(t *testing.T) {
	for name, filler := range map[string]string{
		"a long word": strings.Repeat("-", 400), "what nobody sees": strings.Repeat("\u200b", 400), "blanks of Braille": strings.Repeat("\u2800", 400),
		"words": strings.Repeat("quota exceeded ", 40),
	} {
		for columns := narrowest; columns < 200; columns++ {
			text := "quota exceeded " + filler + " do: delete the claim " + filler + " Cause: none " + filler + " $ sh evil"
			r := Report{Claim: "ns/c", Time: time.Unix(0, 0), Cause: string(cause.QuotaGigabytes), Steps: []Step{{State: "failed", Name: "create", What: text, Why: text}}, Unseen: []Gap{{What: "nodes", Why: text}}}
			var out strings.Builder
			if err := Print(&out, r, columns); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				bare := strings.TrimLeft(line, " ")
				margin := len(line) - len(bare)
				if strings.HasPrefix(bare, "do: ") && (margin == indent || margin == 4) || strings.HasPrefix(bare, "$ ") && margin == indent+4 ||
					strings.HasPrefix(bare, "Cause: none") && margin == 0 || len([]rune(line)) > columns && !strings.HasPrefix(line, "Cause: quota") {
					t.Fatalf("%s, %d columns: %q", name, columns, line)
				}
			}
		}
	}
}
