package check

import "github.com/burano/burano/catalog/ui"

// uiFile checks the dynamic UI definition. Definitions of Heat templates and Helm charts are generated.
func (c *checker) uiFile() {
	text, err := c.pkg.UI()
	if err != nil || text == nil || c.pkg.HOT() || c.pkg.Helm() {
		return
	}
	_, problems := ui.Parse(c.pkg.UIFile(), text)
	for _, problem := range problems {
		rule := UI
		if problem.NoExpression {
			rule = NoExpression
		}
		c.findings = append(c.findings, Finding{rule, problem.File, problem.Line, problem.Column, problem.Message, problem.Warning})
	}
}
