"""Between our trees and other libraries; and the names that modules had before."""
