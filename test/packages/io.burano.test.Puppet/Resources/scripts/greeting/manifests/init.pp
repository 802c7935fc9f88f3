# What the page says, and where: values that the plan gives.
class greeting (String $text, Integer $port) {
}
