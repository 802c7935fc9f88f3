package catalog

import (
	"context"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/internal/door"
)

// chartWork reads charts and checks values with their schemas. Neither can be cancelled, and both may overflow the stack, so that a server has
// children for them. Tools of authors read their own charts, in their own process.
type chartWork struct {
	children *door.Children // nil for this process
	project  string         // whose charts they are
}

// The kinds of work of a child, and their bounds.
const (
	workRead   = "read-chart"
	workValues = "check-chart-values"
)

// ChildWork is the work of child processes of the program.
func ChildWork() map[string]door.Work {
	return map[string]door.Work{workRead: door.JSONWork(readChart), workValues: door.JSONWork(checkChartValues), charts.WorkIndex: door.JSONWork(charts.FindInIndex)}
}

// chartInput is a package's manifest and its chart.
type chartInput struct{ Manifest, Archive []byte }

// chartRead is the result of reading a chart.
type chartRead struct {
	Name, Version, Description, Maintainer string
	Keywords                               []string
	Icon                                   []byte // nil for none
	Form                                   string
}

func (w chartWork) read(ctx context.Context, in chartInput) (chartRead, error) {
	return door.InChild(ctx, w.children, door.Job{Kind: workRead, Doing: "reading the chart", Project: w.project}, readChart, in)
}

func readChart(in chartInput) (chartRead, error) {
	m, err := parseManifest(in.Manifest)
	if err != nil {
		return chartRead{}, err
	}
	chart, err := charts.Read(in.Archive)
	if err != nil {
		return chartRead{}, err
	}
	read := chartRead{Name: chart.Name, Version: chart.Version, Description: chart.Description, Maintainer: chart.Maintainer, Keywords: chart.Keywords}
	if len(chart.Icon) <= maxLogo && isImage(chart.Icon) {
		read.Icon = chart.Icon
	}
	m.describe(read)
	read.Form = (&helmForm{title: m.name, chart: chart}).write(&m)
	return read, nil
}

// chartValues are values of a release of a chart.
type chartValues struct {
	Archive []byte
	Values  map[string]any
}

// CheckChartValues reports where values, together with those of a chart of the package, violate the chart's schema. The error has no secret.
func (p *Package) CheckChartValues(ctx context.Context, archive []byte, values map[string]any) error {
	job := door.Job{Kind: workValues, Doing: "checking the values with the chart's schema", Project: p.work.project}
	_, err := door.InChild(ctx, p.work.children, job, checkChartValues, chartValues{archive, values})
	return err
}

func checkChartValues(in chartValues) (checked struct{}, err error) {
	chart, err := charts.Read(in.Archive)
	if err != nil {
		return checked, err
	}
	return checked, chart.CheckValues(in.Values)
}
