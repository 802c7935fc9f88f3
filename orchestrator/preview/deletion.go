package preview

import (
	"fmt"
	"slices"
	"time"
)

// Deletion is the plan of an environment's deletion.
type Deletion struct {
	Goes  []string // deleted, with all data on it
	Stays []string // not deleted, and left to the user
	// Consents are clusters that go, for which clients ask.
	Consents []Consent
	Busy     *Busy // the task that runs in the environment and prevents its deletion; nil without one
}

// Busy is a task that runs in an environment.
type Busy struct {
	DeploymentID, Kind string
	UserID, UserName   string // the name is "" where it is not known
	Since              time.Time
}

// OfDeletion lists the objects of a model, in the API's form, that go with its environment.
func OfDeletion(deployed map[string]any) Deletion {
	var deletion Deletion
	for _, one := range DestroyedClusters(deployed, nil) {
		deletion.Goes = append(deletion.Goes, one.Destroyed())
		deletion.Consents = append(deletion.Consents, Consent{ObjectID: one.ID, Name: one.Name, Text: one.Destroyed()})
	}
	var others []string
	for _, one := range Objects(deployed) {
		id, _ := one.Fields["openstackId"].(string)
		stack, _ := one.Fields["generatedHeatStackName"].(string)
		_, server := one.Fields["flavor"]
		switch {
		case stack != "":
			others = append(others, fmt.Sprintf("stack %s of %s", stack, one.Name))
		case id != "" && server:
			others = append(others, fmt.Sprintf("server %s (%s) with its disk", one.Name, id))
		case id != "" && one.Type == "io.murano.resources.CinderVolume":
			others = append(others, fmt.Sprintf("volume %s (%s)", one.Name, id))
		}
	}
	slices.Sort(others)
	deletion.Goes = append(deletion.Goes, others...)
	return deletion
}
