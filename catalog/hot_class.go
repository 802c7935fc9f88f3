package catalog

import (
	"path"
	"slices"
	"strings"
)

// class makes the MuranoPL class of the template: an application whose deploy pushes the template as a stack of its own and whose
// destroy deletes it. Where the package has environments of Heat, these set parameters, and contracts do not.
func (t *hotTemplate) class(m *manifest, files contents) string {
	parameters := map[string]any{}
	if len(below(files, hotEnvironments)) == 0 {
		for _, parameter := range t.parameters {
			parameters[parameter.name] = expression("$.heatParameter(" + literal(parameter.rule.String()) + ")")
		}
	}
	outputs, sent := map[string]any{}, map[string]any{}
	for _, output := range t.outputs {
		outputs[output] = expression("$") // texts, numbers, truths, lists and maps
	}
	for name, file := range t.files(files) {
		sent[name] = expression("$resources.string(" + literal(path.Join("HotFiles", file)) + ")")
	}
	set := func(target, value string) any { return assignment{target, expression(value)} }
	report := func(text string) any { return expression("$reporter.report($this, " + literal(text) + ")") }
	environment := set("$environment", "$.find('io.murano.Environment').require()")
	stack := set("$stack", "new('io.murano.system.HeatStack', $environment, name => $.getAttr(generatedHeatStackName))")
	return quotedYAML(map[string]any{
		"Name":    m.fullName,
		"Extends": "io.murano.Application",
		"Properties": map[string]any{
			"name":                   map[string]any{"Contract": expression("$.string().notNull()"), "Usage": "In"},
			"generatedHeatStackName": map[string]any{"Contract": expression("$.string()"), "Usage": "Out"},
			"hotEnvironment":         map[string]any{"Contract": expression("$.string()"), "Usage": "In"},
			"templateParameters":     map[string]any{"Contract": parameters, "Default": map[string]any{}, "Usage": "In"},
			"templateOutputs":        map[string]any{"Contract": outputs, "Default": map[string]any{}, "Usage": "Out"},
		},
		"Methods": map[string]any{
			"deploy": map[string]any{"Body": []any{
				environment,
				set("$reporter", "new('io.murano.system.StatusReporter', environment => $environment)"),
				map[string]any{"If": expression("$.getAttr(generatedHeatStackName) = null"),
					"Then": []any{expression("$.setAttr(generatedHeatStackName, '{0}_{1}'.format(randomName(), id($environment)))")}},
				stack,
				report("Application deployment has started"),
				set("$resources", "new('io.murano.system.Resources')"),
				expression("$stack.setTemplate($resources.yaml(" + literal(m.fullName) + "))"),
				expression("$stack.setParameters($.templateParameters)"),
				assignment{"$files", sent},
				expression("$stack.setFiles($files)"),
				map[string]any{"If": expression("bool($.hotEnvironment)"),
					"Then": []any{expression("$stack.setHotEnvironment($resources.string('HotEnvironments/' + $.hotEnvironment))")}},
				report("Stack creation has started"),
				map[string]any{
					"Try": []any{expression("$stack.push()")},
					"Catch": []any{map[string]any{"As": "e",
						"Do": []any{expression("$reporter.report_error($this, $e.message)"), map[string]any{"Rethrow": nil}}}},
					"Else": []any{set("$.templateOutputs", "$stack.output()"), report("Stack was successfully created"),
						report("Application deployment has finished")},
				},
			}},
			"destroy": map[string]any{"Body": []any{map[string]any{"If": expression("$.getAttr(generatedHeatStackName) != null"),
				"Then": []any{environment, stack, expression("$stack.delete()")}}}},
		},
	})
}

// below lists the files of a folder by their paths in it, sorted.
func below(files contents, folder string) []string {
	var names []string
	for _, file := range slices.Sorted(slices.Values(files.names())) {
		if name, ok := strings.CutPrefix(file, folder); ok {
			names = append(names, name)
		}
	}
	return names
}
