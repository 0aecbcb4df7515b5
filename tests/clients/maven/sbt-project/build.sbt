// The build that tests publish with sbt, and resolve with. The variables LAB_* say where, as whom, and what.
val address = sys.env("LAB_URL")
val lab = ("lab" at address).withAllowInsecureProtocol(true)

organization := "com.example.sbt"
name := sys.env.getOrElse("LAB_NAME", "app")
version := sys.env("LAB_VERSION")
crossPaths := false
autoScalaLibrary := false
Compile / packageDoc / publishArtifact := false
publishMavenStyle := true
publishTo := Some(lab)
resolvers += lab
credentials ++= sys.env.get("LAB_PASSWORD").toSeq.map { password =>
  Credentials("pkgrepo", java.net.URI.create(address).getHost, "admin", password)
}
libraryDependencies ++= sys.env.get("LAB_DEPENDENCY").toSeq.map(_.split(":")).map { case Array(group, artifact, version) =>
  group % artifact % version
}
