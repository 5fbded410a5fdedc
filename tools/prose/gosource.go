package prose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// GoSource checks the comments and identifiers of a Go file and, outside tests, its string constants. Generated files have no findings.
func (c *Checker) GoSource(name string, content []byte) ([]Finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse Go file: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	findings := c.texts(name, comments(files, file))
	if !strings.HasSuffix(name, "_test.go") {
		findings = append(findings, c.texts(name, stringConstants(files, file))...)
	}
	return append(findings, c.identifiers(name, files, file)...), nil
}

// directive is a comment for a tool, such as //go:build.
var directive = regexp.MustCompile(`^//[a-z]+:\S`)

// comments splits comments into paragraphs. Indented lines are code, unless they are list items (https://go.dev/doc/comment).
func comments(files *token.FileSet, file *ast.File) []text {
	var all []text
	for _, group := range file.Comments {
		b := blocks{}
		for _, comment := range group.List {
			for i, line := range commentLines(comment.Text) {
				addCommentLine(&b, files.Position(comment.Pos()).Line+i, line)
			}
		}
		b.end()
		all = append(all, b.all...)
	}
	return all
}

func commentLines(comment string) []string {
	if directive.MatchString(comment) {
		return []string{""}
	}
	if line, ok := strings.CutPrefix(comment, "//"); ok {
		return []string{strings.TrimPrefix(line, " ")}
	}
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/"), "\n")
}

func addCommentLine(b *blocks, at int, line string) {
	code := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")
	switch {
	case strings.TrimSpace(line) == "":
		b.end()
	case listItem.MatchString(line):
		b.end()
		b.add(at, listItem.ReplaceAllString(line, ""))
	case code && !b.open():
	default:
		b.add(at, line)
	}
}

// stringConstants gives the string constants that read as prose: three words or more. Parts that are joined by + are one constant.
func stringConstants(files *token.FileSet, file *ast.File) []text {
	var all []text
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // its tag is no prose, but its type may hold constants of an array's length
			return n.Tag == nil
		case *ast.BasicLit, *ast.BinaryExpr:
			content, isText := constant(n)
			if isText && looksLikeProse(content) {
				all = append(all, paragraphs(content, files.Position(n.Pos()).Line)...)
			}
			return !isText
		}
		return true
	})
	return all
}

// constant joins the string constants of an expression of literals and +. Other operands become one word.
func constant(n ast.Node) (content string, isText bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return "", false
		}
		content, err := strconv.Unquote(n.Value)
		return content, err == nil
	case *ast.BinaryExpr:
		left, leftIsText := constant(n.X)
		right, rightIsText := constant(n.Y)
		if n.Op != token.ADD || !leftIsText && !rightIsText {
			return "", false
		}
		return left + right, true
	}
	return codeWord, false
}

var (
	letters   = regexp.MustCompile(`[A-Za-z]{2,}`)
	structure = regexp.MustCompile(`(?m)^\s*[\w."'-]+:(\s|$)|\{\{|^\s*[<{]`) // YAML, a template, HTML or JSON
)

func looksLikeProse(content string) bool {
	n := 0
	for _, field := range strings.Fields(content) {
		if letters.MatchString(field) {
			n++
		}
	}
	multiline := strings.Contains(strings.TrimSpace(content), "\n")
	return n >= 3 && (!multiline || !structure.MatchString(content))
}

func paragraphs(content string, line int) []text {
	if !strings.Contains(strings.TrimSpace(content), "\n") {
		return []text{{line: line, content: content}}
	}
	return markdown(content, line)
}
