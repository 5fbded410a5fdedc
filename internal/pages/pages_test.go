package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const top = "../.."

// stringsOf are the string literals of a Go file.
func stringsOf(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	return all
}

func TestEveryPageIsThereWithItsTitleAndItsSection(t *testing.T) {
	seen := 0
	for _, text := range stringsOf(t, "pages.go") {
		parts := strings.Split(text, "|")
		if len(parts) < 2 || parts[0] == "" {
			continue
		}
		seen++
		page, err := os.ReadFile(filepath.Join(top, "docs", parts[0]))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(string(page), "# "+parts[1]+"\n") {
			t.Errorf("docs/%s has another title than %q", parts[0], parts[1])
		}
		if len(parts) > 2 && !regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(parts[2])+`$`).Match(page) {
			t.Errorf("docs/%s has no section %q", parts[0], parts[2])
		}
	}
	if seen < 15 {
		t.Errorf("want the pages of pages.go, got %d", seen)
	}
}

var path = regexp.MustCompile(`\bdocs/(how-to|reference|explanation|tutorial|contributing)\b`)

func TestNoOtherStringOfTheProductNamesAPage(t *testing.T) {
	for _, dir := range []string{"cmd", "driver", "generator", "internal"} {
		err := filepath.WalkDir(filepath.Join(top, dir), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for _, text := range stringsOf(t, name) {
				if path.MatchString(text) {
					t.Errorf("%s: use a constant of package pages: %s", name, text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPageIsAnAddressOrATitle(t *testing.T) {
	for _, tt := range []struct {
		page              Page
		base, want, title string
	}{
		{BuildTheImage, "", `page "Build the driver image and name it"`, `page "Build the driver image and name it"`},
		{BuildTheImage, "https://example.com/v1", "https://example.com/v1/docs/how-to/build-the-image.md", `page "Build the driver image and name it"`},
		{ClockIsWrong, "https://example.com", "https://example.com/docs/how-to/troubleshoot.md#a-clock-is-wrong", `page "Troubleshoot a volume", A clock is wrong`},
	} {
		base = tt.base
		if got := tt.page.String(); got != tt.want {
			t.Errorf("want %s, got %s", tt.want, got)
		}
		if got := tt.page.Title(); got != tt.title {
			t.Errorf("want the title %s, got %s", tt.title, got)
		}
	}
	base = ""
}
