#!/bin/bash
echo "said before"
echo "it is broken" >&2
exit 5
