"""The source code as data: measures of its layout, and the picture of its wings."""
