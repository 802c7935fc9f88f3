// Package ui reads and evaluates dynamic UI definitions (UI/ui.yaml of a package): the forms that a user fills in, and the object model
// that is made of the answers. The format is Murano's, versions 2.0 to 2.4 (murano-dashboard, dynamic_ui).
package ui
