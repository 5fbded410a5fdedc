package docs

import (
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// commandNames begin a line of a page that is a command.
var commandNames = []string{
	"cinder-csi-generator", "kubectl", "oc", "openstack", "helm", "make", "docker", "skopeo", "ctr", "etcdctl", "curl", "cinder", "mount", "sudo", "argocd", "flux", "velero", "cosign", "talosctl", "vault",
	"kubeseal", "sops", "rbd", "openssl", "git", "openstack-sim", "cinder-csi-driver",
}

// shellWords begin other lines of an sh block: what each machine has.
var shellWords = []string{"sh", "cp", "rm", "mkdir", "cat", "sed", "tar", "install", "comm", "grep", "jq", "until", "while", "for", "do", "done", "kill", "wait", "export", "test", "cd"}

// pageCommand is one command of a page, without its comment and what follows in a pipe.
type pageCommand struct {
	page, line string
	words      []string
	fenced     bool // in an sh block
}

// commandsOf are the commands in the sh blocks, and in the indented blocks, of a page.
func commandsOf(page, text string) []pageCommand {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var commands []pageCommand
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if after, is := strings.CutPrefix(trimmed, "```"); is {
			if fence != "" {
				fence = ""
			} else {
				fence = "``` " + after
			}
			continue
		}
		if fence == "``` sh" || fence == "" && strings.HasPrefix(line, "    ") {
			for _, part := range regexp.MustCompile(`[|;]|&&`).Split(trimmed, -1) {
				if words := wordsOf(part); len(words) > 0 && slices.Contains(commandNames, words[0]) {
					commands = append(commands, pageCommand{page: page, line: trimmed, words: words, fenced: fence != ""})
				}
			}
		}
	}
	return commands
}

// wordsOf are the words of a command up to a comment or a redirection, without quotes.
func wordsOf(text string) []string {
	var words []string
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "#") || strings.HasPrefix(word, ">") || word == "&" {
			break
		}
		words = append(words, strings.Trim(word, `"'`))
	}
	if len(words) > 0 {
		words[0] = strings.TrimPrefix(words[0], "bin/")
	}
	return words
}

func docsCommands(t *testing.T) []pageCommand {
	t.Helper()
	var commands []pageCommand
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "../docs/") || page == "../README.md" {
			commands = append(commands, commandsOf(strings.TrimPrefix(page, "../"), testfile.Text(t, page))...)
		}
	}
	if len(commands) < 50 {
		t.Fatalf("want at least 50 commands in the pages, found %d", len(commands))
	}
	return commands
}

// accepted reports a command line that the program would refuse.
func (c pageCommand) accepted(t *testing.T, root *cobra.Command, args []string) {
	t.Helper()
	root.SetOut(io.Discard)
	found, rest, err := root.Find(args)
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err == nil && found == root {
		err = os.ErrInvalid
	}
	if err != nil {
		t.Errorf("%s: %s: %v", c.page, c.line, err)
	}
}

func TestEveryGeneratorCommandOfThePagesIsAccepted(t *testing.T) {
	for _, c := range docsCommands(t) {
		if c.words[0] != "cinder-csi-generator" {
			continue
		}
		c.accepted(t, cli.Commands(), c.words[1:])
	}
}

// What follows "kubectl cinder" is a command line of the plugin.
func TestEveryPluginCommandOfThePagesIsAccepted(t *testing.T) {
	seen := 0
	for _, c := range docsCommands(t) {
		if len(c.words) < 2 || c.words[0] != "kubectl" || c.words[1] != "cinder" {
			continue
		}
		seen++
		c.accepted(t, command.Commands(), c.words[2:])
	}
	if seen < 5 {
		t.Errorf("want commands of the plugin in the pages, found %d", seen)
	}
}

// For the other programs, the file records whether the commands of a page were run: "test NAME", "by hand WHERE" or "not run REASON".
func TestEveryCommandOfThePagesWasRunOrIsListedAsNotRun(t *testing.T) {
	listed := map[string]string{}
	for line := range strings.Lines(testfile.Text(t, "testdata/commands.txt")) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(columns) != 3 || !regexp.MustCompile(`^(test|by hand|not run) \S`).MatchString(columns[2]) {
			t.Fatalf("testdata/commands.txt: want PAGE, PROGRAM, and test, by hand or not run; got %q", line)
		}
		listed[columns[0]+"\t"+columns[1]] = columns[2]
	}
	tests := testNames(t)
	used, fenced := map[string]bool{}, map[string]bool{}
	for _, c := range docsCommands(t) {
		if c.words[0] == "make" || c.words[0] == "cinder-csi-generator" {
			continue
		}
		key := c.page + "\t" + c.words[0]
		used[key], fenced[key] = true, fenced[key] || c.fenced
		how := listed[key]
		if name, is := strings.CutPrefix(how, "test "); how == "" || is && !tests[name] {
			t.Errorf("%s: %s: testdata/commands.txt says %q; want how it was run, with a test that exists, or why not", c.page, c.line, how)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		if listed[key] == "test TestTheCommandsOfThePagesRun" && !fenced[key] {
			t.Errorf("testdata/commands.txt: %s: that test runs sh blocks only, and the page has none with a command of this program", key)
		}
		if !used[key] {
			t.Errorf("testdata/commands.txt: no page has %s", key)
		}
	}
}

// A program that no list knows could stand in a page without a word on whether it was run. A script of the reader's repository may be that of a
// change under review, and would have the reader's credential.
func TestEveryLineOfAShellBlockBeginsWithAKnownProgram(t *testing.T) {
	lines := 0
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, "../docs/") && page != "../README.md" {
			continue
		}
		for _, block := range shellBlock.FindAllStringSubmatch(testfile.Text(t, page), -1) {
			text := regexp.MustCompile(`(?s)<<'EOF'\n.*?\nEOF\n`).ReplaceAllString(strings.ReplaceAll(block[1], "\\\n", " "), "\n")
			for line := range strings.Lines(text) {
				words := wordsOf(strings.TrimSpace(line))
				if len(words) == 0 || regexp.MustCompile(`^[a-z]+=`).MatchString(words[0]) {
					continue
				}
				if lines++; !slices.Contains(commandNames, words[0]) && !slices.Contains(shellWords, words[0]) {
					t.Errorf("%s: %s: commandNames and shellWords lack %s", page, strings.TrimSpace(line), words[0])
				}
				if words[0] == "sh" && (len(words) == 1 || !strings.HasPrefix(words[1], "$CINDER_CSI/")) {
					t.Errorf("%s: %s: runs a script that is none of the release", page, strings.TrimSpace(line))
				}
			}
		}
	}
	if lines < 80 {
		t.Errorf("want the lines of the pages, found %d", lines)
	}
}

// A person who follows a link to a page has perhaps no program of this project yet.
func TestEveryPageThatRunsAProgramSaysWhereItComesFrom(t *testing.T) {
	for page, text := range howTos(t) {
		needs := slices.ContainsFunc(commandsOf(page, text), func(c pageCommand) bool {
			return strings.HasPrefix(c.words[0], "cinder-csi-") || c.words[0] == "kubectl" && len(c.words) > 1 && c.words[1] == "cinder"
		})
		if begin, _, _ := strings.Cut(text, "\n## "); needs && !strings.Contains(begin, "use-a-release.md") && page != "use-a-release.md" {
			t.Errorf("docs/how-to/%s runs a program of this project, and does not begin with a link to use-a-release.md", page)
		}
	}
}

// howTos are the pages of docs/how-to by their names.
func howTos(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, page := range pages(t) {
		if name, is := strings.CutPrefix(page, "../docs/how-to/"); is {
			all[name] = testfile.Text(t, page)
		}
	}
	return all
}

// kubectl takes these forms alone, and gives up after 30 s without --timeout. A value of jsonpath is what the API server shows: "2Gi", not "2048Mi".
var waits = regexp.MustCompile(`^kubectl wait --for=(condition=[A-Za-z]+|delete|create|jsonpath='\{(\.[A-Za-z]+)+\}'=\S+) .*--timeout=[0-9]+[smh]`)

func TestEveryWaitOfThePagesIsOneThatKubectlTakesAndEnds(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		for _, line := range regexp.MustCompile(`(?m)^ *kubectl wait .*$`).FindAllString(testfile.Text(t, page), -1) {
			if seen++; !waits.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s: %s", page, strings.TrimSpace(line))
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d waits in the pages", seen)
	}
}
