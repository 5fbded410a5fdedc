package mutant

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Covered runs the tests of a package and returns which of its lines ran. A line outside of functions, such as a constant, counts as one that ran.
// So does each line of a package without tests: those of other packages are its tests.
func Covered(ctx context.Context, root, pkg string, args ...string) (func(file string, line int) bool, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile")
	all := slices.Concat([]string{"test", "-coverprofile", profile}, Flags, args, []string{pkg})
	cmd := exec.CommandContext(ctx, "go", all...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOGC=400", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", pkg, err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ran := map[string]map[int]bool{}
	any := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		place, block, found := strings.Cut(lines.Text(), ".go:")
		var from, to, skip, statements, count int
		if n, _ := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &from, &skip, &to, &skip, &statements, &count); !found || n != 6 {
			continue // the first line
		}
		name := filepath.Base(place) + ".go"
		if ran[name] == nil {
			ran[name] = map[int]bool{}
		}
		any = any || count > 0
		for line := from; line <= to; line++ {
			ran[name][line] = ran[name][line] || count > 0
		}
	}
	return func(file string, line int) bool {
		did, inFunction := ran[filepath.Base(file)][line]
		return did || !inFunction || !any
	}, nil
}
